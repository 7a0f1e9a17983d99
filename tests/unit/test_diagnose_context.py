"""What is known of the machine and tree, and what that says of a fix."""

from __future__ import annotations

from packaging.version import Version

from caffeup.diagnose.context import Context, Tells, context_of, weigh
from caffeup.model.fix import Condition, Fix, Marker
from caffeup.model.machine import Compiler, GpuState, Graphics, Library, Machine, System, Toolkit
from caffeup.model.tree import Origin, Tree


def fix(when: Condition, unless: tuple[Marker, ...] = ()) -> Fix:
    return Fix(id="x", title="x", when=when, unless=unless, source=("x",))


def told(text: str) -> Context:
    tells = Tells()
    tells.look(text)
    return tells.merged(Context())


def test_unknown_is_not_failed() -> None:
    weight = weigh(fix(Condition(cuda=">=13.0")), Context())
    assert (weight.holds, weight.fails, weight.open) == ((), (), ("CUDA",))


def test_a_version_holds_or_fails() -> None:
    assert weigh(fix(Condition(cuda=">=13.0")), Context(versions={"cuda": Version("13.1")})).holds == ("CUDA 13.1",)
    assert weigh(fix(Condition(cuda=">=13.0")), Context(versions={"cuda": Version("12.9")})).fails == ("CUDA 12.9",)


def test_a_bare_major_denies_only_what_it_excludes() -> None:
    eleven = Context(versions={"cuda": Version("11")})
    assert weigh(fix(Condition(cuda=">=11.7,<13.0")), eleven).open
    assert weigh(fix(Condition(cuda=">=12.0")), eleven).fails
    assert weigh(fix(Condition(cuda=">=9.0")), eleven).holds


def test_distribution_by_name_or_likeness() -> None:
    when = Condition(distro=("debian", "ubuntu"))
    assert weigh(fix(when), Context(distro="ubuntu")).holds
    assert weigh(fix(when), Context(distro="pop", distro_like=("ubuntu", "debian"))).holds
    assert weigh(fix(when), Context(distro="fedora")).fails
    assert weigh(fix(when), Context()).open


def test_markers_count_only_where_the_tree_was_inspected() -> None:
    marker = Marker(file="Makefile", contains="x")
    assert weigh(fix(Condition(tree=(marker,))), Context()).fails == ()
    assert weigh(fix(Condition(tree=(marker,))), Context(markers=())).fails
    assert weigh(fix(Condition(tree=(marker,))), Context(markers=("Makefile::x",))).holds
    assert weigh(fix(Condition(), unless=(marker,)), Context(markers=("Makefile::x",))).fails


def test_a_log_tells_its_versions() -> None:
    text = "\ng++ -I/usr/local/cuda-11.2/include -I/usr/include/opencv4 -DCPU_ONLY\n/usr/include/c++/9/bits/x.h\nlibprotoc 3.12.4"
    context = told(text)
    versions = {name: str(version) for name, version in context.versions.items()}
    assert versions == {"cuda": "11.2", "opencv": "4", "gcc": "9", "protobuf": "3.12.4"}
    assert context.mode == "cpu"
    assert told("In file included from /usr/include/opencv4/opencv2/core.hpp:52").versions["opencv"] == Version("4")
    assert told("value ‘CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED’ not handled").versions["cudnn"] == Version("9.0")
    assert told("/usr/lib/gcc/x86_64-linux-gnu/12/collect2: x").distro_like == ("debian",)
    assert "fedora" in told("/usr/lib/gcc/x86_64-redhat-linux/4.8.5/ld: x").distro_like


def test_two_majors_in_a_log_tell_nothing() -> None:
    assert "cuda" not in told("/usr/local/cuda-9.0/include\nlibcudart.so.11.0").versions


def test_of_two_toolkits_none_is_taken_for_granted() -> None:
    def toolkit(version: str) -> Toolkit:
        return Toolkit(via="test", root=f"/usr/local/cuda-{version}", version=Version(version))

    machine = Machine(
        system=System(distro="ubuntu", distro_version="22.04"),
        graphics=Graphics(state=GpuState.NONE),
        toolkits=(toolkit("11.8"), toolkit("12.4")),
        compilers=(Compiler(via="test", kind="gcc", path="/usr/bin/g++", version=Version("11.4")),),
        libraries=(
            Library(via="test", name="opencv", version=Version("4.5.4")),
            Library(via="test", name="openblas", version=Version("0.3")),
        ),
    )
    context = context_of(machine, Tree(root="/srv/caffe", origin=Origin(kind="folder")))
    assert {name: str(version) for name, version in context.versions.items()} == {"gcc": "11.4", "opencv": "4.5.4"}
    assert (context.distro, context.distro_version, context.tree, context.fork) == ("ubuntu", "22.04", "/srv/caffe", "")
