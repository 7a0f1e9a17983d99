"""The patch list on a tree: states, all or nothing, twice is once, and the way back."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from caffeup.errors import DiskError, PatchFailed
from caffeup.facts.tables import Facts
from caffeup.model.fix import Edit, NewFile, Shim, ShimLibrary
from caffeup.model.outcome import PatchEntry, PatchState
from caffeup.model.plan import Plan
from caffeup.patch import engine
from patchtools import facts_of, fix, plan_of, snapshot

EDIT = 'title = "t"\nwhy = "w"\nsince = "s"\nwhom = "m"\nsource = ["a"]\n'
RENAME = EDIT + "[[spots]]\nfiles = ['*.py']\nregex = '\\bold\\b'\nhits = 0\nreplace = 'new'\nmissing = 'skip'\n"
APPEND = EDIT + "[[spots]]\nfiles = ['code.py']\nanchor = 'last'\nafter = 'appended\n'\ndone = '^appended$'\n".replace(
    "'appended\n'", '"appended\\n"'
)
ALL = ("shims", "library", "rename", "append", "layer")
CONFIG = "CPU_ONLY := 1\n"


@pytest.fixture
def patches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "patches"
    for path, text in {
        "shims/set/lib/header.h": "#include_next <lib/header.h>\n",
        "shims/set/own.h": "/* own */\n",
        "edits/rename.toml": RENAME,
        "edits/append.toml": APPEND,
        "layer/layer.cpp": "// layer\n",
    }.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    monkeypatch.setattr("caffeup.patch.wanted.bundled", lambda _: folder)
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "src" / "layers").mkdir(parents=True)
    (root / "code.py").write_text("old = 1\nlast\n")
    (root / "code.py").chmod(0o755)
    os.utime(root / "code.py", ns=(1, 1_500_000_000_123_456_789))
    (root / "other.py").write_text("nothing here\n")
    return root


@pytest.fixture
def facts() -> Facts:
    return facts_of(
        fix("shims", Shim(headers=("set/lib/header.h", "set/own.h"))),
        fix("library", ShimLibrary(name="gone"), ShimLibrary(name="cblas", links="openblas")),
        fix("rename", Edit(edit="rename")),
        fix("append", Edit(edit="append")),
        fix("layer", NewFile(source="layer/layer.cpp", target="src/layers/layer.cpp")),
    )


def states(entries: tuple[PatchEntry, ...]) -> dict[str, str]:
    return {entry.id: f"{entry.state}{' ' + entry.by if entry.by else ''}" for entry in entries}


@pytest.fixture
def plan(tree: Path) -> Plan:
    return plan_of(tree, *ALL, links={"cuda": "/usr/local/cuda"})


def test_preview_writes_nothing(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    before = snapshot(tree, ours=True)
    found = states(engine.preview(str(tree), plan, facts, CONFIG))
    assert set(found.values()) == {"needed"}
    assert list(found) == [
        "link:cuda",
        "shims",
        "library/library-1",
        "library/library-2",
        "rename",
        "append",
        "layer",
        "Makefile.config",
    ]
    assert snapshot(tree, ours=True) == before


def test_apply_puts_everything_in_place(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    found = engine.apply(str(tree), plan, facts, CONFIG)
    assert set(states(found).values()) == {"done caffeup"}
    assert (tree / "code.py").read_text() == "new = 1\nlast\nappended\n"
    assert (tree / "code.py").stat().st_mode & 0o777 == 0o755
    assert (tree / ".caffeup/include/lib/header.h").read_text() == "#include_next <lib/header.h>\n"
    assert (tree / ".caffeup/lib/libgone.a").read_bytes() == b"!<arch>\n"
    assert "INPUT(-lopenblas)" in (tree / ".caffeup/lib/libcblas.so").read_text()
    assert str((tree / ".caffeup/cuda").readlink()) == "/usr/local/cuda"
    assert (tree / "src/layers/layer.cpp").read_text() == "// layer\n"
    assert (tree / "Makefile.config").read_text() == CONFIG


def test_applying_twice_touches_nothing(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    engine.apply(str(tree), plan, facts, CONFIG)
    before = snapshot(tree, ours=True)
    again = engine.apply(str(tree), plan, facts, CONFIG)
    assert set(states(again).values()) == {"done caffeup"}
    assert snapshot(tree, ours=True) == before


def test_revert_gives_back_bytes_modes_and_times(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    before = snapshot(tree, ours=True)
    engine.apply(str(tree), plan, facts, CONFIG)
    assert {entry.state for entry in engine.revert(str(tree))} == {PatchState.REVERTED}
    assert snapshot(tree, ours=True) == before
    assert not (tree / ".caffeup").exists()
    assert engine.revert(str(tree)) == ()


def test_one_of_two_edits_of_a_file_can_be_reverted(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    engine.apply(str(tree), plan, facts, CONFIG)
    engine.revert(str(tree), ("rename",))
    assert (tree / "code.py").read_text() == "old = 1\nlast\nappended\n"
    assert states(engine.preview(str(tree), plan, facts, CONFIG))["rename"] == "needed"
    engine.revert(str(tree), ("append",))
    assert (tree / "code.py").read_text() == "old = 1\nlast\n"
    assert (tree / "code.py").stat().st_mtime_ns == 1_500_000_000_123_456_789


def test_a_fix_stands_for_its_entries(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    engine.apply(str(tree), plan, facts, CONFIG)
    gone = engine.revert(str(tree), ("library",))
    assert states(gone) == {"library/library-1": "reverted", "library/library-2": "reverted"}
    with pytest.raises(PatchFailed, match="not applied here: nonsense"):
        engine.revert(str(tree), ("nonsense",))


def test_what_the_plan_no_longer_needs_is_taken_back(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    engine.apply(str(tree), plan, facts, CONFIG)
    less = plan_of(tree, "shims")
    assert states(engine.preview(str(tree), less, facts, CONFIG))["rename"] == "obsolete"
    found = engine.apply(str(tree), less, facts, CONFIG)
    assert states(found)["rename"] == "reverted"
    assert (tree / "code.py").read_text() == "old = 1\nlast\n"
    assert not (tree / "src/layers/layer.cpp").exists()
    assert not (tree / ".caffeup/lib").exists()
    assert (tree / "Makefile.config").exists()


def test_only_the_named_entries_are_applied_and_others_stay(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    engine.apply(str(tree), plan, facts, only=("append",))
    assert (tree / "code.py").read_text() == "old = 1\nlast\nappended\n"
    engine.apply(str(tree), plan, facts, only=("rename",))
    assert (tree / "code.py").read_text() == "new = 1\nlast\nappended\n"
    with pytest.raises(PatchFailed, match="no such entry"):
        engine.apply(str(tree), plan, facts, only=("nonsense",))


def test_the_configuration_stays_where_none_is_given(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    engine.apply(str(tree), plan, facts, CONFIG)
    engine.apply(str(tree), plan, facts)
    assert (tree / "Makefile.config").read_text() == CONFIG


def test_one_conflict_and_nothing_is_applied(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    (tree / "code.py").write_text("old = 1\nlast\nlast\n")
    before = snapshot(tree, ours=True)
    with pytest.raises(PatchFailed) as caught:
        engine.apply(str(tree), plan, facts, CONFIG)
    assert [finding.id for finding in caught.value.findings] == ["patch-anchor-ambiguous"]
    assert caught.value.findings[0].affects == "append"
    assert snapshot(tree, ours=True) == before
    assert states(engine.preview(str(tree), plan, facts, CONFIG))["append"] == "conflicting"


def test_a_file_of_the_users_is_never_overwritten(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    (tree / "src/layers/layer.cpp").write_text("// mine\n")
    with pytest.raises(PatchFailed) as caught:
        engine.apply(str(tree), plan, facts, CONFIG)
    assert caught.value.findings[0].id == "patch-file-in-the-way"
    assert (tree / "src/layers/layer.cpp").read_text() == "// mine\n"


def test_what_the_tree_has_itself_is_done_by_the_tree(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    (tree / "src/layers/layer.cpp").write_text("// layer\n")
    (tree / "code.py").write_text("last\nappended\n")
    found = states(engine.apply(str(tree), plan, facts, CONFIG))
    assert (found["layer"], found["append"], found["rename"]) == ("done tree", "done tree", "not-applicable")
    engine.revert(str(tree))
    assert (tree / "src/layers/layer.cpp").read_text() == "// layer\n"


def test_a_file_changed_since_is_reported_and_kept(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    engine.apply(str(tree), plan, facts, CONFIG)
    mine = (tree / "code.py").read_text() + "my own line\n"
    (tree / "code.py").write_text(mine)
    (tree / ".caffeup/include/own.h").write_text("/* mine */\n")
    found = states(engine.apply(str(tree), plan, facts, CONFIG))
    assert found["append"] == found["rename"] == found["shims"] == "edited"
    assert (tree / "code.py").read_text() == mine
    assert states(engine.status(str(tree)))["append"] == "edited"
    (tree / "code.py").write_text("all is another\n")
    kept = {entry.id: entry for entry in engine.revert(str(tree))}
    assert kept["append"].state is kept["rename"].state is PatchState.EDITED
    assert (tree / "code.py").read_text() == "all is another\n"
    place = kept["append"].because.rpartition(": ")[2]
    assert (tree / place).read_text() == "old = 1\nlast\n"
    assert not (tree / "src/layers/layer.cpp").exists()


def test_a_file_restored_by_git_is_patched_again(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    engine.apply(str(tree), plan, facts, CONFIG)
    (tree / "code.py").write_text("old = 1\nlast\n")
    assert states(engine.status(str(tree)))["append"] == "needed"
    engine.apply(str(tree), plan, facts, CONFIG)
    assert (tree / "code.py").read_text() == "new = 1\nlast\nappended\n"


def test_a_newer_version_of_a_file_is_patched_and_is_what_revert_goes_back_to(
    patches: Path, tree: Path, facts: Facts, plan: Plan
) -> None:
    engine.apply(str(tree), plan, facts, CONFIG)
    (tree / "code.py").write_text("# upstream's next version\nold = 2\nlast\n")
    engine.apply(str(tree), plan, facts, CONFIG)
    assert (tree / "code.py").read_text() == "# upstream's next version\nnew = 2\nlast\nappended\n"
    engine.revert(str(tree))
    assert (tree / "code.py").read_text() == "# upstream's next version\nold = 2\nlast\n"


def test_a_deleted_file_stays_deleted(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    engine.apply(str(tree), plan, facts, CONFIG)
    (tree / "code.py").unlink()
    (tree / ".caffeup/include/own.h").unlink()
    found = states(engine.apply(str(tree), plan, facts, CONFIG))
    assert found["rename"] == "not-applicable"
    assert not (tree / "code.py").exists()
    assert (tree / ".caffeup/include/own.h").exists()


def test_caffeups_own_next_version_replaces_the_last(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    engine.apply(str(tree), plan, facts, CONFIG)
    (patches / "shims/set/own.h").write_text("/* own, better */\n")
    assert states(engine.preview(str(tree), plan, facts, CONFIG))["shims"] == "needed"
    engine.apply(str(tree), plan, facts, CONFIG)
    assert (tree / ".caffeup/include/own.h").read_text() == "/* own, better */\n"


def test_a_foreign_configuration_is_kept_and_comes_back(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    (tree / "Makefile.config").write_text("mine\n")
    (tree / "Makefile.config.before-caffeup").write_text("an older one of mine\n")
    before = snapshot(tree)
    found = {entry.id: entry for entry in engine.apply(str(tree), plan, facts, CONFIG)}
    assert found["Makefile.config"].because == "yours is kept as Makefile.config.before-caffeup.1"
    assert (tree / "Makefile.config.before-caffeup.1").read_text() == "mine\n"
    assert (tree / "Makefile.config").read_text() == CONFIG
    state = snapshot(tree, ours=True)
    engine.apply(str(tree), plan, facts, CONFIG)
    assert snapshot(tree, ours=True) == state
    engine.apply(str(tree), plan, facts, "CPU_ONLY := 1\nBLAS := open\n")
    assert not (tree / "Makefile.config.before-caffeup.2").exists()
    engine.revert(str(tree))
    assert snapshot(tree) == before


def test_a_configuration_edited_since_is_never_overwritten(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    engine.apply(str(tree), plan, facts, CONFIG)
    (tree / "Makefile.config").write_text(CONFIG + "DEBUG := 1\n")
    assert states(engine.apply(str(tree), plan, facts, CONFIG))["Makefile.config"] == "edited"
    with pytest.raises(PatchFailed) as caught:
        engine.apply(str(tree), plan, facts, "BLAS := open\n")
    assert caught.value.findings[0].id == "config-edited"
    assert (tree / "Makefile.config").read_text() == CONFIG + "DEBUG := 1\n"
    (tree / "Makefile.config").rename(tree / "Makefile.config.mine")
    engine.apply(str(tree), plan, facts, "BLAS := open\n")
    assert (tree / "Makefile.config").read_text() == "BLAS := open\n"


def test_a_deleted_configuration_does_not_cost_the_users_own(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    (tree / "Makefile.config").write_text("mine\n")
    engine.apply(str(tree), plan, facts, CONFIG)
    (tree / "Makefile.config").unlink()
    engine.apply(str(tree), plan, facts, CONFIG)
    assert (tree / "Makefile.config.before-caffeup").read_text() == "mine\n"
    engine.revert(str(tree))
    assert (tree / "Makefile.config").read_text() == "mine\n"


def test_a_link_that_points_elsewhere_now_is_renewed(patches: Path, tree: Path, facts: Facts) -> None:
    engine.apply(str(tree), plan_of(tree, links={"cuda": "/usr/local/cuda-12"}), facts)
    engine.apply(str(tree), plan_of(tree, links={"cuda": "/usr/local/cuda-13"}), facts)
    assert str((tree / ".caffeup/cuda").readlink()) == "/usr/local/cuda-13"


def test_a_folder_where_a_link_belongs_is_refused(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    (tree / ".caffeup/cuda").mkdir(parents=True)
    with pytest.raises(PatchFailed, match="is not a file"):
        engine.apply(str(tree), plan, facts, CONFIG)


@pytest.mark.parametrize("name", [".caffeup", "src"])
def test_links_out_of_the_tree_are_refused(
    patches: Path, tree: Path, facts: Facts, plan: Plan, name: str, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    (outside / "layers").mkdir(parents=True)
    if (tree / name).exists():
        (tree / name / "layers").rmdir()
        (tree / name).rmdir()
    (tree / name).symlink_to(outside)
    with pytest.raises(PatchFailed) as caught:
        engine.apply(str(tree), plan, facts, CONFIG)
    assert caught.value.findings[0].id == "patch-link-leads-out"
    assert sorted(path.name for path in outside.rglob("*")) == ["layers"]


def test_a_linked_source_that_leads_out_is_refused_and_one_within_is_followed(
    patches: Path, tree: Path, facts: Facts, plan: Plan, tmp_path: Path
) -> None:
    (tree / "sub").mkdir()
    (tree / "sub/real.py").write_text("old = 2\n")
    (tree / "linked.py").symlink_to("sub/real.py")
    engine.apply(str(tree), plan, facts, CONFIG)
    assert (tree / "sub/real.py").read_text() == "new = 2\n"
    assert (tree / "linked.py").is_symlink()
    engine.revert(str(tree))
    (tmp_path / "foreign.py").write_text("old = 3\n")
    (tree / "out.py").symlink_to(tmp_path / "foreign.py")
    with pytest.raises(PatchFailed):
        engine.apply(str(tree), plan, facts, CONFIG)
    assert (tmp_path / "foreign.py").read_text() == "old = 3\n"


def test_a_read_only_file_is_refused(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    (tree / "code.py").chmod(0o444)
    with pytest.raises(PatchFailed) as caught:
        engine.apply(str(tree), plan, facts, CONFIG)
    assert caught.value.findings[0].id == "patch-read-only"
    assert caught.value.findings[0].remedies[0].commands == ("chmod u+w code.py",)


@pytest.mark.parametrize("target", ["../outside.cpp", "/tmp/outside.cpp", "src/../../x.cpp"])
def test_a_new_file_cannot_leave_the_tree(patches: Path, tree: Path, target: str) -> None:
    facts = facts_of(fix("bad", NewFile(source="layer/layer.cpp", target=target)))
    with pytest.raises(PatchFailed):
        engine.apply(str(tree), plan_of(tree, "bad"), facts)


@pytest.mark.parametrize("links", ["a) OUTPUT(/etc/passwd", "x;y", "../z"])
def test_a_library_name_is_a_name(patches: Path, tree: Path, links: str) -> None:
    facts = facts_of(fix("bad", ShimLibrary(name="x", links=links)))
    with pytest.raises(PatchFailed, match="no name for a library"):
        engine.apply(str(tree), plan_of(tree, "bad"), facts)


def test_missing_things_are_told(patches: Path, tree: Path, facts: Facts, tmp_path: Path) -> None:
    with pytest.raises(PatchFailed, match="no such folder"):
        engine.apply(str(tmp_path / "nowhere"), plan_of(tree), facts)
    with pytest.raises(PatchFailed, match="the facts do not have: unknown"):
        engine.preview(str(tree), plan_of(tree, "unknown"), facts)
    broken = facts_of(fix("f", Shim(headers=("set/none.h",))), fix("g", Edit(edit="none")))
    with pytest.raises(PatchFailed, match=r"patches/shims/set/none\.h"):
        engine.preview(str(tree), plan_of(tree, "f"), broken)
    with pytest.raises(PatchFailed, match=r"patches/edits/none\.toml"):
        engine.preview(str(tree), plan_of(tree, "g"), broken)


@pytest.mark.parametrize("text", ["not json", "{}x", '{"schema": 99}', '{"files": 3}', "\udcff"])
def test_a_damaged_ledger_is_told_and_nothing_is_touched(patches: Path, tree: Path, facts: Facts, plan: Plan, text: str) -> None:
    engine.apply(str(tree), plan, facts, CONFIG)
    (tree / ".caffeup/ledger.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    before = snapshot(tree, ours=True)
    with pytest.raises(PatchFailed, match="ledger of this tree cannot be read"):
        engine.apply(str(tree), plan, facts, CONFIG)
    assert snapshot(tree, ours=True) == before


def test_a_lost_pre_image_is_told(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    engine.apply(str(tree), plan, facts, CONFIG)
    for kept in (tree / ".caffeup/undo").iterdir():
        kept.write_text("damaged")
    with pytest.raises(PatchFailed, match="missing or damaged"):
        engine.revert(str(tree))


def test_a_full_disk_takes_everything_back(
    patches: Path, tree: Path, facts: Facts, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(tree)
    writes = 0

    def fsync(handle: int) -> None:
        nonlocal writes
        writes += 1
        if writes == 9:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(DiskError, match="the disk is full"):
        engine.apply(str(tree), plan, facts, CONFIG)
    assert snapshot(tree) == before
    assert not (tree / ".caffeup/ledger.json").exists()


def test_the_diff_shows_everything(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    planned = engine.diff(str(tree), plan, facts, CONFIG)
    engine.apply(str(tree), plan, facts, CONFIG)
    done = engine.diff(str(tree))
    assert planned == done
    assert "--- a/code.py\n+++ b/code.py\n" in done
    assert "-old = 1\n+new = 1\n last\n+appended\n" in done
    assert "--- /dev/null\n+++ b/.caffeup/lib/libgone.a\n" in done
    assert "+link to /usr/local/cuda\n" in done
    assert engine.diff(str(tree), plan, facts, CONFIG) == ""


def test_a_diff_of_a_file_without_a_last_newline(patches: Path, tree: Path, facts: Facts) -> None:
    (tree / "code.py").write_bytes(b"old\x0c = 1 \xff")
    engine.apply(str(tree), plan_of(tree, "rename"), facts)
    assert engine.diff(str(tree)).endswith("+new\x0c = 1 \ufffd\n\\ No newline at end of file\n")


def test_status_without_a_plan_tells_what_is_applied(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    assert engine.status(str(tree)) == ()
    engine.apply(str(tree), plan, facts, CONFIG)
    assert set(states(engine.status(str(tree))).values()) == {"done caffeup"}


def test_a_library_of_another_name_here_gets_its_stand_in(patches: Path, tree: Path, facts: Facts, plan: Plan) -> None:
    renamed = msgspec.structs.replace(plan, stand_ins=(ShimLibrary(name="hdf5", links="hdf5_serial"),))
    engine.apply(str(tree), renamed, facts, "CPU_ONLY := 1\n")
    assert "INPUT(-lhdf5_serial)" in (tree / ".caffeup/lib/libhdf5.so").read_text()
    engine.apply(str(tree), plan, facts, "CPU_ONLY := 1\n")
    assert not (tree / ".caffeup/lib/libhdf5.so").exists()
