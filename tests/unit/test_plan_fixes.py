"""Which fixes are planned, what comes of them, and the answers that explain a plan."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from packaging.version import Version

from caffeup.model.fix import Advice, Condition, Edit, Fix, Install, Marker, NewFile, Setting, Shim, ShimLibrary
from caffeup.model.machine import System
from caffeup.plan.explain import alike, explain, explain_all, keys, why_not
from caffeup.plan.fixes import Decided, applies, select_fixes, shim_lines
from planvalues import FACTS, cc, cudnn, gpu, machine, plan, toolkit, tree, value_of

SHIM = Shim(headers=("cudnn.h",))
CUDNN_8 = Fix(id="cudnn-8", title="cuDNN 8 removed it", when=Condition(cudnn=">=8.0"), remedy=(SHIM,), source=("here",))


def decided(gpu: bool = True, unknown: tuple[str, ...] = (), markers: tuple[str, ...] = (), **versions: str) -> Decided:
    system = System(distro="ubuntu", distro_like=("debian",), arch="aarch64")
    found = {name: Version(version) for name, version in versions.items()}
    return Decided(versions=found, unknown=unknown, gpu=gpu, system=system, tree=tree(markers=markers, fork="ssd"))


def fix(*remedy: Any, unless: tuple[Marker, ...] = (), harmless: bool = False, **when: Any) -> Fix:
    return Fix(
        id="one", title="title", when=Condition(**when), remedy=remedy or (SHIM,), unless=unless, harmless=harmless, source=("x",)
    )


def test_a_fix_is_planned_where_its_condition_holds_with_the_values() -> None:
    assert applies(CUDNN_8, decided(cudnn="9.14.0")) == "cuDNN 8 removed it: cuDNN 9.14.0"
    assert applies(CUDNN_8, decided(cudnn="7.6.5")) is None
    assert applies(CUDNN_8, decided()) is None


@pytest.mark.parametrize(
    ("when", "have", "planned"),
    [
        ({"mode": "gpu"}, decided(gpu=True), True),
        ({"mode": "gpu"}, decided(gpu=False), False),
        ({"fork": ("ssd", "bvlc")}, decided(), True),
        ({"fork": ("nvidia",)}, decided(), False),
        ({"distro": ("debian",)}, decided(), True),
        ({"distro": ("fedora",)}, decided(), False),
        ({"arch": ("aarch64",)}, decided(), True),
        ({"arch": ("x86_64",)}, decided(), False),
        ({"opencv": ">=4.0", "gcc": "<13"}, decided(opencv="4.6.0", gcc="12.2.0"), True),
        ({"opencv": ">=4.0", "gcc": "<12"}, decided(opencv="4.6.0", gcc="12.2.0"), False),
        ({"tree": (Marker(file="a.cpp", contains="x"),)}, decided(markers=("a.cpp::x",)), True),
        ({"tree": (Marker(file="a.cpp"), Marker(file="b.cpp"))}, decided(markers=("a.cpp::",)), False),
    ],
)
def test_conditions(when: dict[str, Any], have: Decided, planned: bool) -> None:
    assert (applies(fix(**when), have) is not None) is planned


def test_a_fix_for_a_place_that_only_its_edit_can_find() -> None:
    only = fix(Edit(edit="e"), mode="gpu", place_for_edit=True)
    assert applies(only, decided(markers=("edit::one",))) == "title: gpu build"
    assert applies(only, decided(markers=("edit::two",))) is None
    after = msgspec.structs.replace(decided(), tree=tree(applied=("one",)))  # the place is gone, by the edit
    assert applies(only, after) is not None


def test_what_the_tree_solved_itself_is_not_planned() -> None:
    solved = fix(cudnn=">=8.0", unless=(Marker(file="a.hpp", contains="_v7"),))
    assert applies(solved, decided(cudnn="9.0")) is not None
    assert applies(solved, decided(cudnn="9.0", markers=("a.hpp::_v7",))) is None


@pytest.mark.parametrize("applied", [("one",), ("one/edit-2", "link:cuda")])
def test_what_caffeup_applied_stays_planned_though_the_tree_looks_solved(applied: tuple[str, ...]) -> None:
    ours = fix(cudnn=">=8.0", tree=(Marker(file="a.cpp", contains="old"),), unless=(Marker(file="a.cpp", contains="new"),))
    before = decided(markers=("a.cpp::old",), cudnn="9.0")
    after = msgspec.structs.replace(before, tree=tree(markers=("a.cpp::new",), applied=applied))
    assert applies(ours, before) == applies(ours, after)
    other_cudnn = msgspec.structs.replace(after, versions={"cudnn": Version("7.6")})
    assert applies(ours, other_cudnn) is None


def test_advice_alone_and_noise_are_not_planned() -> None:
    assert applies(fix(Advice(text="x"), cudnn=">=8.0"), decided(cudnn="9.0")) is None
    assert applies(fix(Install(library="glog"), cudnn=">=8.0"), decided(cudnn="9.0")) is None
    assert applies(fix(cudnn=">=8.0", harmless=True), decided(cudnn="9.0")) is None


def test_without_a_condition_only_files_are_planned() -> None:
    assert applies(fix(NewFile(source="a", target="b")), decided()) == "title"
    assert applies(fix(Setting(key="NVCCFLAGS", value="-x")), decided()) is None
    assert applies(fix(Edit(edit="x")), decided()) is None


def test_an_unknown_version_plans_only_what_does_no_harm() -> None:
    have = decided(unknown=("glog",))
    assert applies(fix(glog=">=0.7"), have) == "title: glog of unknown version"
    assert applies(fix(Setting(key="COMMON_FLAGS", value="-x"), glog=">=0.7"), have) is None


def test_settings_come_from_fixes_where_the_tree_reads_the_key() -> None:
    chosen = select_fixes(
        (fix(Setting(key="NVCCFLAGS", value="-a  -b"), Setting(key="NOBODY_READS", value="1"), cuda=">=13.0"),),
        decided(cuda="13.0"),
    )
    assert [(line.key, line.value, line.operator) for line in chosen.part.config] == [("NVCCFLAGS", ("-a", "-b"), "+=")]


def test_a_setting_of_a_variable_that_the_makefile_sets_later_is_an_override() -> None:
    chosen = select_fixes((fix(Setting(key="WARNINGS", value="-w", append=False), cuda=">=13.0"),), decided(cuda="13.0"))
    (line,) = chosen.part.config
    assert line.override
    assert line.operator == ":="


def test_nothing_is_added_to_a_variable_that_the_makefile_sets_later() -> None:
    """``override X += y`` would make make ignore every assignment of the Makefile's own."""
    assert select_fixes((fix(Setting(key="LIBRARIES", value="z"), cuda=">=13.0"),), decided(cuda="13.0")).part.config == ()


def test_shim_libraries_come_first_on_the_link_line() -> None:
    chosen = select_fixes((fix(ShimLibrary(name="boost_system"), boost=">=1.89"),), decided(boost="1.92.0"))
    assert chosen.shim_libraries
    lines = shim_lines(tree(), libraries=True).config
    assert [(line.key, line.value) for line in lines] == [
        ("COMMON_FLAGS", ("-I.caffeup/include",)),
        ("LIBRARY_DIRS", (".caffeup/lib",)),
    ]


def test_what_a_planned_fix_installs_is_a_package() -> None:
    assert select_fixes((fix(SHIM, Install(library="glog"), cuda=">=13.0"),), decided(cuda="13.0")).part.packages == ("glog",)


def test_cuda_13_gets_the_flags_that_let_tests_link() -> None:
    made = plan(machine(gpu("NVIDIA H200", "9.0"), toolkits=(toolkit("13.0"),)))
    flags = value_of(made, "NVCCFLAGS")
    assert "-static-global-template-stub=false" in flags
    assert "-device-entity-has-hidden-visibility=false" in flags
    older = plan(machine(gpu("NVIDIA H200", "9.0"), toolkits=(toolkit("12.4"),)))
    assert "-static-global-template-stub=false" not in value_of(older, "NVCCFLAGS")


# --- explain -----------------------------------------------------------------------------------------------------

MADE = plan(machine(gpu("NVIDIA H200", "9.0"), toolkits=(toolkit("13.0"), toolkit("11.8")), **cudnn("9.14.0")))


def test_every_key_can_be_explained() -> None:
    for key in keys(MADE):
        assert explain(MADE, key), key
    assert explain(MADE, "cuda_arch").startswith("CUDA_ARCH := -gencode")
    assert "because" in explain(MADE, "TOOLKIT")
    assert explain(MADE, "weather") == ""


@pytest.mark.parametrize(
    ("written", "meant"), [("pyhton", "python"), ("Toolkti", "toolkit"), ("cuda_arhc", "CUDA_ARCH"), ("weather", ""), ("", "")]
)
def test_a_key_with_a_slip_is_guessed(written: str, meant: str) -> None:
    assert alike(MADE, written) == meant


def test_everything_is_explained_at_once() -> None:
    text = explain_all(MADE)
    for one in MADE.decisions:
        assert f"{one.key}: {one.value}" in text
    broken = plan(machine(gpu("GTX 1080", "6.1"), toolkits=(toolkit("13.0"),)))
    assert explain_all(broken).startswith("CONFLICT gpu-dropped")
    assert "way out" in explain(broken, "gpu-dropped")


def test_why_not() -> None:
    here = machine(gpu("NVIDIA H200", "9.0"), driver="590.44.01", toolkits=(toolkit("13.0"), toolkit("11.8")))
    made = plan(here)
    assert why_not(made, here, FACTS, cc("9.0")) == ()
    pascal = " / ".join(why_not(made, here, FACTS, cc("6.1")))
    assert "CUDA 13.0 does not compile for it" in pascal
    assert "CUDA 11.8 in /usr/local/cuda-11.8 does" in pascal
    assert "the last branch for Pascal is 580" in pascal
    assert "--arch 8.6" in " / ".join(why_not(made, here, FACTS, cc("8.6")))
    assert "PTX of 9.0" in " / ".join(why_not(made, here, FACTS, cc("12.0")))
    assert "not a compute capability that the facts know" in why_not(made, here, FACTS, cc("77.7"))[0]


def test_why_not_in_a_cpu_build() -> None:
    here = machine()
    assert "without CUDA" in why_not(plan(here), here, FACTS, cc("8.6"))[0]
    assert "--cuda wheels --arch 8.6" in why_not(plan(here), here, FACTS, cc("8.6"))[-1], "a way out"
    unable = machine(wheels_root="")
    assert "CUDA toolkit, 11.1" in why_not(plan(unable), unable, FACTS, cc("8.6"))[-1]
    assert len(why_not(plan(here), here, FACTS, cc("77.7"))) == 2
