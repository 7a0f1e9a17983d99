"""Laws for the rows of the catalogue, and the tools that make matching fast."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from caffeup.cli.main import app
from caffeup.diagnose.catalogue import BadSymptom, Catalogue
from caffeup.diagnose.context import Context
from caffeup.diagnose.literals import required
from caffeup.diagnose.remedies import remedies
from caffeup.diagnose.wording import canonical, clean
from caffeup.facts.libraries import LibraryFile
from caffeup.facts.load import load_facts
from caffeup.facts.ranges import Range
from caffeup.model.fix import Advice, Fix, Install

FACTS = load_facts()
LOGS = Path(__file__).resolve().parents[1] / "logs"
LIBRARIES = {row.id for row in FACTS.reader.table("libraries", LibraryFile).library}
VERSIONED = ("cuda", "cudnn", "gcc", "clang", "opencv", "protobuf", "boost", "glog", "hdf5", "python", "numpy", "skimage")
DANGEROUS = re.compile(
    r"\brm\b|\bchmod\b|\bchown\b|uninstall|\b(?:remove|purge|autoremove|erase)\b|host_config|ln -s|\bdd\b|mkfs|\bcurl\b|\bwget\b|allow-unsupported"
)
PLACEHOLDER = re.compile(r"\{(\w+)\}")

rows = pytest.mark.parametrize("fix", FACTS.fixes, ids=lambda fix: fix.id)


def texts(fix: Fix) -> list[str]:
    advice = [one for one in fix.remedy if isinstance(one, Advice)]
    return [fix.title, fix.cause, *(one.text for one in advice), *(command for one in advice for command in one.commands)]


@rows
def test_a_row_can_be_used(fix: Fix) -> None:
    Catalogue((fix,))
    assert re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", fix.id)
    assert fix.source
    assert fix.cause
    assert fix.title


@rows
def test_nothing_dangerous_is_advised(fix: Fix) -> None:
    for text in texts(fix):
        assert not DANGEROUS.search(text), text
    commands = [command for one in fix.remedy if isinstance(one, Advice) for command in one.commands]
    assert not any("sudo" in command for command in commands)


PLACES = {
    "debian": ("apt-get", Context(distro="debian", distro_version="12", tree="/srv/caffe")),
    "ubuntu": ("apt-get", Context(distro="ubuntu", distro_like=("debian",), distro_version="18.04")),
    "fedora": ("dnf", Context(distro="fedora")),
    "rhel": ("dnf", Context(distro="rocky", distro_like=("rhel", "centos", "fedora"), distro_version="9")),
    "arch": ("pacman", Context(distro="arch")),
    "opensuse": ("zypper", Context(distro="opensuse-leap", distro_like=("suse", "opensuse"))),
}
MANAGERS = {"apt-get", "apt", "dnf", "yum", "pacman", "zypper", "brew", "apk", "emerge"}
RECURSIVE_OR_SYSTEM = re.compile(r"(?:^|[\s;|&])(?:sed -i|tee|mv|cp|install|ln|patch)\b.*(?:/usr|/etc|/lib|/opt)\b")


@rows
@pytest.mark.parametrize("place", PLACES)
def test_what_is_proposed_is_narrow_and_of_this_distribution(fix: Fix, place: str) -> None:
    """As it is shown, with commands filled in: nothing is removed or opened, and no other distribution's package is named."""
    manager, context = PLACES[place]
    for remedy in remedies(fix, FACTS, context):
        for text in (remedy.text, *remedy.commands):
            assert not DANGEROUS.search(text), text
            assert not RECURSIVE_OR_SYSTEM.search(text), text
            assert "777" not in text
            assert not (set(re.findall(r"[\w-]+", text)) & (MANAGERS - {manager})), text
        for command in remedy.commands:
            words = shlex.split(command)
            assert words, command
            assert words[0] != "sudo" or words[1] == manager, command
        if place in {"debian", "ubuntu", "fedora"}:
            assert not re.search(r"\b(?:debian|fedora|arch|suse): ", remedy.text), remedy.text


@rows
def test_commands_of_caffeup_exist(fix: Fix) -> None:
    """Each is one that the program accepts, with these options."""
    program = typer.main.get_command(app)
    for remedy in fix.remedy:
        for command in remedy.commands if isinstance(remedy, Advice) else ():
            words = shlex.split(command)
            if words[0] == "caffeup":
                _accepted(program, words[1:])


def _accepted(group: Any, words: list[str]) -> None:
    if not words:
        assert group.invoke_without_command
        return
    command = group.commands[words[0]]
    if hasattr(command, "commands"):
        _accepted(command, words[1:])
    else:
        command.make_context(words[0], words[1:])


@rows
def test_placeholders_are_found_by_every_symptom(fix: Fix) -> None:
    wanted = {name for text in texts(fix) for name in PLACEHOLDER.findall(text)} - {
        "HDF5_LIBRARIES",
        "HDF5_HL_LIBRARIES",
        "CUDNN_INCLUDE",
    }
    for symptom in fix.symptoms:
        found = set(re.compile(symptom).groupindex)
        assert wanted <= found | ({"close"} if {"known", "field"} <= found else set()), symptom


@rows
def test_ranges_are_half_open_and_libraries_exist(fix: Fix) -> None:
    for name in VERSIONED:
        if getattr(fix.when, name):
            Range.parse(getattr(fix.when, name))
    assert {one.library for one in fix.remedy if isinstance(one, Install)} <= LIBRARIES
    assert set(fix.follows) <= {other.id for other in FACTS.fixes}


@rows
def test_a_problem_has_a_remedy_and_noise_has_none(fix: Fix) -> None:
    assert bool(fix.remedy) is not fix.harmless


@rows
def test_every_symptom_that_can_be_an_error_has_a_sample(fix: Fix) -> None:
    if fix.id == "boost-bind-placeholders":
        return  # a note of the compiler, which is never an error
    if not fix.symptoms:
        return  # a matter of speed or exactness, which no log shows
    assert list((LOGS / fix.id).glob("*.log"))


def test_samples_belong_to_rows() -> None:
    assert {path.name for path in LOGS.iterdir() if path.is_dir()} <= {fix.id for fix in FACTS.fixes} | {"clean"}


PRIVATE = re.compile(r"/home/|/Users/|/root/|/tmp/w|/work/|@[\w-]+\.(?:com|org|net)\b")


@pytest.mark.parametrize("path", sorted(LOGS.glob("*/*.log")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_samples_hold_nothing_private(path: Path) -> None:
    assert not PRIVATE.search(path.read_text(encoding="utf-8"))


def test_a_symptom_needs_what_is_said_of_it() -> None:
    """Every line of the samples that a symptom matches holds the literals by which it is found."""
    lines = [canonical(clean(line)) for path in LOGS.glob("*/*.log") for line in path.read_text(encoding="utf-8").splitlines()]
    matched = 0
    for fix in FACTS.fixes:
        for symptom in fix.symptoms:
            pattern, needs = re.compile(symptom), required(symptom)
            for line in filter(pattern.search, lines):
                matched += 1
                assert all(any(text in line for text in literals) for literals in needs), (symptom, line)
    assert matched > 100


@pytest.mark.parametrize(
    ("pattern", "needs"),
    [
        (r"abc", [("abc",)]),
        (r"abc\.def", [("abc.def",)]),
        (r"abc?d", [("ab",), ("d",)]),
        (r"abc+d", [("abc",), ("d",)]),
        (r"a(?:bcd|efgh)ij", [("bcd", "efgh"), ("ij",), ("a",)]),
        (r"a(?:bcd|)ij", [("ij",), ("a",)]),
        (r"(?:bcd)?xy", [("xy",)]),
        (r"(?:bcd){2}xy", [("bcd",), ("xy",)]),
        (r"(?!no)xy(?=z)", [("xy",)]),
        (r"x[]a]yz", [("yz",), ("x",)]),
        (r"(?P<name>\w+)abc$", [("abc",)]),
        (r"\w+", []),
        (r"abc|de", [("abc", "de")]),
    ],
)
def test_required_literals(pattern: str, needs: list[tuple[str, ...]]) -> None:
    assert sorted(required(pattern)) == sorted(needs)


PIECES = st.sampled_from(
    ["ab", "c", "d?", "e*", "f+", "(?:gh|i)", "(?:j)?", "[kl]", r"\.", ".", r"\w", "m{2}", "n{0,1}", "^", "(?!zz)"]
)


@given(st.lists(PIECES, min_size=1, max_size=6).map("".join), st.text("abcdefghijklmn.", max_size=12))
def test_a_match_holds_the_required_literals(pattern: str, text: str) -> None:
    if re.search(pattern, text):
        assert all(any(literal in text for literal in literals) for literals in required(pattern))


@pytest.mark.parametrize("symptom", [r"\w+", "(", "abc", r"(?i)error: something", r"[a-z]*err?or?"])
def test_a_symptom_that_would_be_slow_or_wrong_is_refused(symptom: str) -> None:
    fix = Fix(id="x", title="x", symptoms=(symptom,), source=("x",))
    with pytest.raises(BadSymptom, match="x"):
        Catalogue((fix,))
