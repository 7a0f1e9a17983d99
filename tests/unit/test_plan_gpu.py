"""The GPU side of the plan: mode, compute capabilities, toolkit, compiler, cuDNN."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from packaging.version import Version

from caffeup.app.words import plan_in_short
from caffeup.model.machine import CudnnHeader, CudnnLibrary, GpuState, Machine, Python, PythonKind, System, Toolkit, ToolkitLayout
from caffeup.model.plan import Plan, Switch
from caffeup.plan.packages import required
from planvalues import (
    GIB,
    KEYS,
    WHEELS_ROOT,
    cc,
    cudnn,
    gcc,
    gpu,
    ids,
    machine,
    notes,
    plan,
    python,
    toolkit,
    tree,
    value_of,
)

RTX_4090 = gpu("NVIDIA GeForce RTX 4090", "8.9")
GTX_1080_TI = gpu("NVIDIA GeForce GTX 1080 Ti", "6.1")
RTX_5090 = gpu("NVIDIA GeForce RTX 5090", "12.0")
H200 = gpu("NVIDIA H200", "9.0")


def because(the_plan: Plan, key: str) -> str:
    return the_plan.decision(key).because


def why_not(the_plan: Plan, key: str, word: str) -> str:
    return next(one.because for one in the_plan.decision(key).rejected if word in one.value)


def laid_out() -> Toolkit:
    return toolkit(
        "13.0",
        WHEELS_ROOT,
        via="laid out by caffeup from NVIDIA's wheels",
        layout=ToolkitLayout.LAID_OUT,
        include_dirs=(f"{WHEELS_ROOT}/include", f"{WHEELS_ROOT}/include/cccl"),
    )


def without(the_machine: Machine, **changes: Any) -> Machine:
    return msgspec.structs.replace(the_machine, **changes)


# --- mode ---------------------------------------------------------------------------------------------------


def test_no_gpu_and_no_toolkit_is_cpu_only_and_said() -> None:
    made = plan(machine())
    assert not made.gpu
    assert value_of(made, "CPU_ONLY") == ("1",)
    assert because(made, "mode") == "no GPU and no CUDA toolkit"
    assert not made.conflicts
    assert made.test_filter == "*GPU*:*CuDNN*"


def test_a_gpu_without_a_toolkit_is_never_a_silent_cpu_build() -> None:
    made = plan(machine(RTX_4090, driver="535.154.05", driver_cuda="12.2"))
    assert ids(made) == {"no-toolkit"}
    ways = [one.text for one in made.conflicts[0].remedies]
    assert any("11.8 or newer, not newer than 12.2" in text for text in ways)
    assert any("--cpu" in command for one in made.conflicts[0].remedies for command in one.commands)
    assert not any(one.by_caffeup for one in made.conflicts[0].remedies)


def test_the_distributions_own_toolkit_is_offered_where_it_knows_the_gpu() -> None:
    def commands(card: str, driver: str) -> list[str]:
        made = plan(machine(gpu("card", card), driver=driver))
        return [command for one in made.conflicts[0].remedies for command in one.commands]

    assert "sudo apt-get install nvidia-cuda-toolkit" in commands("8.6", "535.154.05")
    assert "sudo apt-get install nvidia-cuda-toolkit" not in commands("8.9", "535.154.05")
    assert "sudo apt-get install nvidia-cuda-toolkit" not in commands("8.6", "418.39")


def test_a_toolkit_is_laid_out_where_driver_and_gpu_can_use_it_and_none_is_installed() -> None:
    made = plan(machine(RTX_4090, driver="580.65.06"))
    assert not made.conflicts
    assert made.lay_out == "13.0.3"
    assert made.decision("toolkit").value == f"CUDA 13.0 in {WHEELS_ROOT}"
    assert made.decision("cudnn").value == "9.14.0"
    assert [str(one) for one in made.sass] == ["8.9"]
    assert {link.name: link.target for link in made.links}["cuda"] == WHEELS_ROOT
    assert made.run_paths == (".caffeup/cuda/lib64",)
    told = next(one for one in made.notes if one.id == "cuda-wheels")
    assert "GiB" in told.why or "MiB" in told.why
    assert "caffeup clean --cuda" in told.why


def test_the_plan_before_is_the_plan_after_it_is_laid_out() -> None:
    before = plan(machine(RTX_4090, driver="580.65.06"))
    toolkits = (laid_out(),)
    after = plan(
        machine(
            RTX_4090, driver="580.65.06", toolkits=toolkits, **cudnn("9.14.0", f"{WHEELS_ROOT}/include", f"{WHEELS_ROOT}/lib64")
        )
    )
    assert not after.lay_out
    assert (after.config, after.links, after.run_paths) == (before.config, before.links, before.run_paths)


@pytest.mark.parametrize(
    ("card", "driver", "changes"),
    [
        ("8.6", "580.65.06", {}),  # Ubuntu 22.04's own CUDA 11.5 knows it
        ("8.9", "570.86", {}),
        ("6.1", "580.65.06", {}),
        ("8.9", "580.65.06", {"wheels_root": ""}),
        ("8.9", "580.65.06", {"toolkits": (toolkit("12.4", missing=("cublas",)),)}),
    ],
)
def test_nothing_is_laid_out_unasked_where_something_else_serves_or_it_would_not(
    card: str, driver: str, changes: dict[str, Any]
) -> None:
    made = plan(machine(gpu("card", card), driver=driver, **changes))
    assert not made.lay_out
    assert made.conflicts


def test_an_old_driver_is_named_with_the_one_that_would_do() -> None:
    ways = [one.text for one in plan(machine(RTX_4090, driver="535.154.05")).conflicts[0].remedies]
    assert any("install driver 580.65.06 or newer" in text for text in ways)
    ways = [one.text for one in plan(machine(GTX_1080_TI, driver="535.154.05")).conflicts[0].remedies]
    assert not any("install driver" in text for text in ways)


def test_wheels_by_name_need_no_gpu() -> None:
    made = plan(machine(), cuda="wheels", arch=("9.0",))
    assert (made.gpu, made.lay_out, made.conflicts) == (True, "13.0.3", ())
    assert [str(one) for one in made.sass] == ["9.0"]
    assert plan(machine(), cuda="wheels", cpu=True).lay_out == ""


def test_wheels_by_name_are_taken_over_an_installed_toolkit() -> None:
    made = plan(machine(RTX_4090, toolkits=(toolkit("12.4"),)), cuda="wheels")
    assert made.lay_out
    assert made.decision("toolkit").value == f"CUDA 13.0 in {WHEELS_ROOT}"


def test_what_was_laid_out_gives_way_to_what_is_installed() -> None:
    made = plan(machine(RTX_4090, toolkits=(laid_out(), toolkit("12.4"))))
    assert made.decision("toolkit").value == "CUDA 12.4 in /usr/local/cuda-12.4"
    assert "--cuda wheels" in why_not(made, "toolkit", "13.0")


def test_what_was_laid_out_is_not_taken_silently_without_a_gpu() -> None:
    made = plan(machine(toolkits=(laid_out(),)))
    assert not made.gpu
    assert "--cuda wheels" in because(made, "mode")
    assert plan(machine(toolkits=(laid_out(),)), cuda="wheels", arch=("9.0",)).gpu


def test_a_machine_that_the_wheels_are_not_made_for_is_told_so() -> None:
    made = plan(machine(RTX_4090, wheels_root="", toolkits=(toolkit("12.4"),)), cuda="wheels")
    assert ids(made) == {"wheels-not-for-here"}
    assert not made.lay_out
    old_card = plan(machine(GTX_1080_TI, driver="580.65.06"))
    assert not any(one.by_caffeup for one in old_card.conflicts[0].remedies)
    assert any("older than 13.0" in one.text for one in old_card.conflicts[0].remedies)


@pytest.mark.parametrize(("state", "name"), [(GpuState.NO_DRIVER, "no-driver"), (GpuState.DRIVER_SILENT, "driver-silent")])
def test_a_gpu_that_cannot_be_used_is_a_conflict(state: GpuState, name: str) -> None:
    assert ids(plan(machine(state=state))) == {name}
    with_toolkit = plan(machine(state=state, toolkits=(toolkit("12.4"),)))
    assert with_toolkit.gpu
    assert name in notes(with_toolkit)
    assert ids(with_toolkit) == {"arch-needed"}


def test_cpu_is_forced() -> None:
    made = plan(machine(RTX_4090, toolkits=(toolkit("12.4"),)), cpu=True)
    assert not made.gpu
    assert not made.links
    assert value_of(made, "CUDA_DIR") == ()
    assert not made.conflicts


def test_a_tree_without_a_cpu_build_says_so() -> None:
    keys = tuple(key for key in KEYS if key != "CPU_ONLY")
    assert ids(plan(machine(), tree(cpu_only=False, config_keys=keys), cpu=True)) == {"cpu-not-possible"}
    assert ids(plan(machine(), tree(cpu_only=False, config_keys=keys))) == {"no-toolkit"}


def test_a_toolkit_that_lacks_parts_is_not_used_where_no_gpu_is_seen() -> None:
    made = plan(machine(toolkits=(toolkit("13.0", missing=("cublas", "curand")),)))
    assert not made.gpu
    assert "lacks cublas, curand" in because(made, "mode")
    assert not made.conflicts


def test_a_toolkit_that_lacks_parts_stops_a_machine_with_a_gpu() -> None:
    made = plan(machine(H200, driver="580.65.06", toolkits=(toolkit("13.0", missing=("cublas",)),)))
    assert ids(made) == {"toolkit-incomplete"}
    assert any(one.by_caffeup for one in made.conflicts[0].remedies)


def test_a_container_without_its_gpu_is_told() -> None:
    made = plan(machine(state=GpuState.HIDDEN))
    assert not made.gpu
    assert "gpu-hidden" in notes(made)


# --- compute capabilities ----------------------------------------------------------------------------------------


def test_the_local_gpu_gets_sass_and_ptx() -> None:
    made = plan(machine(RTX_4090, toolkits=(toolkit("12.4"),)))
    assert not made.conflicts
    assert made.sass == (cc("8.9"),)
    assert made.ptx == cc("8.9")
    assert value_of(made, "CUDA_ARCH") == (
        "-gencode",
        "arch=compute_89,code=sm_89",
        "-gencode",
        "arch=compute_89,code=compute_89",
    )
    assert made.test_filter == ""


def test_two_gpus_get_sass_each_and_ptx_of_the_newest() -> None:
    made = plan(machine(RTX_4090, gpu("A100", "8.0", 1), gpu("A100", "8.0", 2), toolkits=(toolkit("12.4"),)))
    assert [str(one) for one in made.sass] == ["8.0", "8.9"]
    assert made.ptx == cc("8.9")


def test_a_card_newer_than_the_toolkit_gets_ptx_with_a_note() -> None:
    made = plan(machine(RTX_5090, driver="570.86.10", toolkits=(toolkit("12.4"),)))
    assert not made.conflicts
    assert made.sass == ()
    assert made.ptx == cc("9.0")
    assert value_of(made, "CUDA_ARCH") == ("-gencode", "arch=compute_90,code=compute_90")
    note = next(one for one in made.notes if one.id == "gpu-newer")
    assert "12.8" in note.remedies[0].text


def test_sass_of_the_same_major_runs_on_a_newer_minor() -> None:
    made = plan(machine(RTX_4090, toolkits=(toolkit("11.5"),)))
    assert made.sass == (cc("8.6"),)
    assert made.ptx == cc("8.6")
    assert "gpu-newer" in notes(made)


def test_ptx_is_never_of_something_newer_than_the_card() -> None:
    made = plan(machine(gpu("a card to come", "10.7"), toolkits=(toolkit("13.0"),)))
    assert made.ptx == cc("10.3")


def test_with_an_old_and_a_too_new_card_ptx_serves_the_too_new_one() -> None:
    made = plan(machine(gpu("Tesla T4", "7.5"), gpu("NVIDIA GeForce RTX 5090", "12.0", 1), toolkits=(toolkit("12.4"),)))
    assert made.sass == (cc("7.5"),)
    assert made.ptx == cc("9.0")


def test_a_card_that_the_toolkit_dropped_names_toolkit_and_driver() -> None:
    made = plan(machine(GTX_1080_TI, driver="580.65.06", toolkits=(toolkit("13.0"),)))
    assert ids(made) == {"gpu-dropped"}
    text = made.conflicts[0].remedies[0].text
    assert "12.9" in text
    assert "580" in text
    assert "--cuda 12.9" in made.conflicts[0].remedies[0].commands[0]


def test_with_another_card_the_dropped_one_can_be_left_out() -> None:
    both = machine(GTX_1080_TI, gpu("RTX 4090", "8.9", 1), toolkits=(toolkit("13.0"),))
    made = plan(both)
    assert ids(made) == {"gpu-dropped"}
    assert made.sass == (cc("8.9"),)
    asked = plan(both, arch=("8.9",))
    assert not asked.conflicts
    assert "gpu-left-out" in notes(asked)


def test_fermi_has_no_ptx_of_its_own_minor() -> None:
    made = plan(machine(gpu("GTX 460", "2.1"), driver="375.26", compilers=(gcc("5.4.0"),), toolkits=(toolkit("8.0.61"),)))
    assert value_of(made, "CUDA_ARCH")[:2] == ("-gencode", "arch=compute_20,code=sm_21")
    assert made.ptx is None


def test_a_toolkit_without_a_gpu_asks_for_arch() -> None:
    blind = machine(toolkits=(toolkit("12.4"),))
    made = plan(blind)
    assert made.gpu
    assert ids(made) == {"arch-needed"}
    assert plan(blind, arch=("8.6",)).sass == (cc("8.6"),)
    with_yes = plan(blind, yes=True)
    assert not with_yes.conflicts
    assert cc("5.0") in with_yes.sass
    assert cc("8.7") not in with_yes.sass
    assert with_yes.ptx == cc("9.0")
    assert with_yes.test_filter.startswith("*/2.*")
    for wish in (("native",), ("native", "native"), ("native,8.6",)):
        assert ids(plan(blind, yes=True, arch=wish)) == {"arch-needed"}


def test_arch_lists() -> None:
    made = plan(machine(RTX_4090, toolkits=(toolkit("12.4"),)), arch=("8.6,8.9", "7.5"))
    assert [str(one) for one in made.sass] == ["7.5", "8.6", "8.9"]
    everything = plan(machine(RTX_4090, toolkits=(toolkit("12.4"),)), arch=("all",))
    assert len(everything.sass) > 8
    native = plan(machine(RTX_4090, toolkits=(toolkit("12.4"),)), arch=("native", "7.0"))
    assert [str(one) for one in native.sass] == ["7.0", "8.9"]
    newer = plan(machine(RTX_5090, toolkits=(toolkit("12.4"),)), arch=("native", "8.6"))
    assert newer.ptx == cc("9.0")
    assert "gpu-newer" in notes(newer)


@pytest.mark.parametrize(
    ("arch", "name"),
    [("eight", "arch-unknown"), ("", "arch-needed"), ("6.1", "arch-not-supported"), ("99.0", "arch-not-supported")],
)
def test_arch_that_makes_no_sense(arch: str, name: str) -> None:
    assert ids(plan(machine(toolkits=(toolkit("13.0"),), compilers=(gcc("13.2.0"),)), arch=(arch,))) == {name}


def test_a_card_without_a_told_capability_is_known_by_its_name() -> None:
    made = plan(machine(gpu("NVIDIA GeForce RTX 3090", None), toolkits=(toolkit("12.4"),)))
    assert made.sass == (cc("8.6"),)


def test_two_digit_majors_are_not_mixed_up() -> None:
    made = plan(machine(RTX_5090, toolkits=(toolkit("12.8"),)))
    assert value_of(made, "CUDA_ARCH")[1] == "arch=compute_120,code=sm_120"


# --- toolkits ----------------------------------------------------------------------------------------------------


def test_the_newest_toolkit_that_fits_is_taken_and_the_others_are_kept() -> None:
    made = plan(
        machine(RTX_4090, driver="550.54.14", toolkits=(toolkit("11.0"), toolkit("12.4"), toolkit("11.8"), toolkit("13.0")))
    )
    assert made.decision("toolkit").value.startswith("CUDA 12.4")
    assert "needs driver 580.65.06" in why_not(made, "toolkit", "13.0")
    assert "older than" in why_not(made, "toolkit", "11.0")
    assert "newer" in why_not(made, "toolkit", "11.8")


def test_the_environment_decides_between_toolkits_that_both_fit() -> None:
    both = (toolkit("12.4"), toolkit("11.8", via="env CUDA_HOME"))
    assert plan(machine(RTX_4090, toolkits=both)).decision("toolkit").value.startswith("CUDA 11.8")


def test_an_older_card_makes_an_older_toolkit_win() -> None:
    made = plan(machine(GTX_1080_TI, toolkits=(toolkit("13.0"), toolkit("12.4"))))
    assert made.decision("toolkit").value.startswith("CUDA 12.4")
    assert not made.conflicts
    assert "no longer compiles" in why_not(made, "toolkit", "13.0")


@pytest.mark.parametrize("wish", ["11.8", "/usr/local/cuda-11.8", "/usr/local/cuda-11.8/", "11"])
def test_a_toolkit_is_asked_for(wish: str) -> None:
    made = plan(machine(RTX_4090, toolkits=(toolkit("12.4"), toolkit("11.8.0", "/usr/local/cuda-11.8"))), cuda=wish)
    assert made.decision("toolkit").value == "CUDA 11.8.0 in /usr/local/cuda-11.8"


@pytest.mark.parametrize("wish", ["9.0", "/nowhere", "$(rm)"])
def test_a_toolkit_that_is_not_there_is_not_replaced(wish: str) -> None:
    made = plan(machine(RTX_4090, toolkits=(toolkit("12.4"),)), cuda=wish)
    assert ids(made) == {"toolkit-not-found"}
    assert value_of(made, "CUDA_DIR") == ()
    assert "caffeup up ssd --cuda /usr/local/cuda-12.4" in ways_out(made), "one that is here"


def test_where_no_toolkit_is_none_is_said_to_be_there() -> None:
    made = plan(machine(), cuda="12.9")
    assert "caffeup up ssd --cuda wheels" in ways_out(made)
    assert "caffeup up ssd" not in ways_out(made), "it would do the same without what was asked for"
    assert "for ," not in plan_in_short(made, tree())
    assert "1 thing stands in the way" in plan_in_short(made, tree())


def ways_out(the_plan: Plan) -> tuple[str, ...]:
    return tuple(command for one in the_plan.conflicts for way in one.remedies for command in way.commands)


def test_wheels_without_a_compiler_are_no_toolkit() -> None:
    split = toolkit(
        "12.4", "/home/me/venv/lib/python3.12/site-packages/nvidia", layout=ToolkitLayout.SPLIT_WHEELS, nvcc="", missing=("nvcc",)
    )
    made = plan(machine(RTX_4090, driver="550.54.14", toolkits=(split,)))
    assert ids(made) == {"no-toolkit"}
    assert made.links == ()
    beside = plan(machine(RTX_4090, toolkits=(split, toolkit("12.4"))))
    assert not beside.conflicts


def test_a_driver_that_is_too_old() -> None:
    made = plan(machine(RTX_4090, driver="520.61.05", driver_cuda="11.8", toolkits=(toolkit("12.4"),)))
    assert ids(made) == {"driver-too-old"}
    assert "525.60.13" in made.conflicts[0].why


def test_minor_versions_of_a_major_share_a_driver() -> None:
    made = plan(machine(RTX_4090, driver="525.60.13", driver_cuda="12.0", toolkits=(toolkit("12.4"),)))
    assert not made.conflicts
    assert "driver-without-ptx" in notes(made)
    assert "driver-without-ptx" not in notes(plan(machine(RTX_4090, driver_cuda="12.4", toolkits=(toolkit("12.4.1"),))))


def test_jetson_has_no_driver_of_its_own_number() -> None:
    jetson = System(distro="ubuntu", distro_like=("debian",), arch="aarch64", jetson="NVIDIA Orin", cores=6, memory_bytes=8 * GIB)
    made = plan(machine(gpu("Orin", "8.7"), driver="35.4", system=jetson, toolkits=(toolkit("11.4"),), compilers=(gcc("9.4.0"),)))
    assert not made.conflicts
    assert made.sass == (cc("8.7"),)


def test_the_toolkit_is_reached_through_a_link() -> None:
    made = plan(machine(RTX_4090, toolkits=(toolkit("12.4", "/home/me/my cuda $1"),)))
    assert value_of(made, "CUDA_DIR") == (".caffeup/cuda",)
    assert [(one.name, one.target) for one in made.links] == [("cuda", "/home/me/my cuda $1")]
    assert ".caffeup/cuda/lib64" in made.run_paths


def test_a_distributions_toolkit_never_puts_usr_first() -> None:
    packaged = toolkit(
        "11.5", "/usr", layout=ToolkitLayout.DISTRO, nvcc="/usr/lib/nvidia-cuda-toolkit/bin/nvcc",
        include_dirs=("/usr/include",), library_dirs=("/usr/lib/x86_64-linux-gnu",),
    )  # fmt: skip
    made = plan(machine(gpu("RTX 3090", "8.6"), toolkits=(packaged,)))
    assert value_of(made, "CUDA_DIR") == (".caffeup/cuda",)
    assert [(one.name, one.target) for one in made.links] == [("cuda/bin", "/usr/lib/nvidia-cuda-toolkit/bin")]
    assert not any(word in ("/usr", "/usr/include") for line in made.config for word in line.value)


def test_cccl_is_given_to_the_host_compiler() -> None:
    root = "/usr/local/cuda-13.0"
    made = plan(machine(H200, toolkits=(toolkit("13.0", include_dirs=(f"{root}/include", f"{root}/include/cccl")),)))
    assert ".caffeup/cuda/include/cccl" in value_of(made, "INCLUDE_DIRS")
    assert ".caffeup/cuda/include" not in value_of(made, "INCLUDE_DIRS")


def test_stubs_never_get_into_the_run_path() -> None:
    root = "/usr/local/cuda-12.4"
    made = plan(machine(RTX_4090, toolkits=(toolkit("12.4", library_dirs=(f"{root}/lib64", f"{root}/lib64/stubs")),)))
    assert not any("stubs" in path for path in made.run_paths)


# --- compiler ----------------------------------------------------------------------------------------------------


def test_a_compiler_that_nvcc_accepts_is_chosen_and_the_default_left_alone() -> None:
    made = plan(
        machine(
            RTX_4090,
            toolkits=(toolkit("11.8"),),
            compilers=(gcc("13.2.0"), gcc("10.5.0", "/usr/bin/g++-10"), gcc("11.4.0", "/usr/bin/g++-11")),
        )
    )
    assert made.compiler == "/usr/bin/g++-11"
    assert value_of(made, "CUSTOM_CXX") == ("/usr/bin/g++-11",)
    assert "up to 11" in why_not(made, "compiler", "(/usr/bin/g++)")


def test_compilers_that_are_all_too_new() -> None:
    made = plan(machine(RTX_4090, toolkits=(toolkit("11.8"),), compilers=(gcc("13.2.0"),)))
    assert ids(made) == {"compiler-too-new"}
    assert made.conflicts[0].remedies[0].commands == ("sudo apt-get install g++-11",)


def test_without_cuda_the_default_compiler_serves() -> None:
    assert plan(machine(compilers=(gcc("15.1.0"), gcc("11.4.0", "/usr/bin/g++-11")))).compiler == "/usr/bin/g++"


def test_no_compiler_is_something_to_install() -> None:
    made = plan(machine(compilers=()))
    assert required(made) == ("g++",)
    assert not made.conflicts
    assert required(plan(machine(RTX_4090, toolkits=(toolkit("12.4"),), compilers=()))) == ("g++",)


def test_a_compiler_that_would_be_refused_is_not_installed() -> None:
    debian = System(distro="debian", distro_version="12", cores=2, root=True)
    made = plan(machine(RTX_4090, toolkits=(toolkit("11.8"),), compilers=(), system=debian))
    assert ids(made) == {"compiler-too-new"}
    assert "g++" not in made.packages
    assert made.conflicts[0].remedies[0].commands == ("sudo apt-get install g++-11",)


def test_a_broken_compiler_is_a_conflict() -> None:
    assert ids(plan(machine(compilers=(gcc("12.2.0", works=False),)))) == {"no-compiler"}


def test_condas_compiler_comes_last() -> None:
    conda = gcc("12.3.0", "/opt/conda/bin/x86_64-conda-linux-gnu-g++", target="x86_64-conda-linux-gnu")
    assert plan(machine(compilers=(conda, gcc("11.4.0")))).compiler == "/usr/bin/g++"


def test_a_cross_compiler_is_not_taken() -> None:
    other = gcc("12.3.0", "/usr/bin/aarch64-linux-gnu-g++", target="aarch64-linux-gnu")
    assert plan(machine(compilers=(other, gcc("11.4.0", target="x86_64-linux-gnu")))).compiler == "/usr/bin/g++"


def test_a_compiler_in_an_odd_place_is_linked_to() -> None:
    made = plan(machine(compilers=(gcc("11.4.0", "/home/me/my tools/g++"),)))
    assert value_of(made, "CUSTOM_CXX") == (".caffeup/bin/g++",)
    assert made.links[0].target == "/home/me/my tools/g++"


# --- cuDNN -------------------------------------------------------------------------------------------------------


def test_cudnn_is_on_where_header_and_library_agree() -> None:
    made = plan(machine(H200, toolkits=(toolkit("13.0"),), **cudnn("9.14.0")))
    assert made.cudnn
    assert value_of(made, "USE_CUDNN") == ("1",)
    assert "cudnn-needs-gpu" in notes(made)


@pytest.mark.parametrize(
    ("cuda", "version", "card", "words"),
    [
        ("13.0", "8.9.7", "9.0", "made for CUDA"),
        ("12.4", "9.14.0", "6.1", "compute capability 6.1"),
        ("8.0", "4.0.7", "5.2", "not one of 5 to 9"),
        ("13.0", "10.1.0", "9.0", "not one of 5 to 9"),
    ],
)
def test_cudnn_is_off_with_the_reason_where_it_does_not_fit(cuda: str, version: str, card: str, words: str) -> None:
    old = (gcc("5.4.0"),) if cuda == "8.0" else (gcc("11.4.0"),)
    made = plan(machine(gpu("card", card), toolkits=(toolkit(cuda),), compilers=old, **cudnn(version)))
    assert not made.cudnn
    assert words in because(made, "cudnn")
    assert value_of(made, "USE_CUDNN") == ()


def test_cudnn_header_and_library_that_differ() -> None:
    parts = cudnn("8.9.7")
    old = CudnnLibrary(via="glob", directory="/usr/lib", file="/usr/lib/libcudnn.so.7.6.5", version=Version("7.6.5"))
    made = plan(machine(RTX_4090, toolkits=(toolkit("12.4"),), cudnn_headers=parts["cudnn_headers"], cudnn_libraries=(old,)))
    assert not made.cudnn
    assert "7.6.5" in because(made, "cudnn")


def test_a_library_older_than_its_header_is_refused_and_a_newer_one_noted() -> None:
    header = cudnn("9.5.0")["cudnn_headers"]
    older = plan(
        machine(RTX_4090, toolkits=(toolkit("12.4"),), cudnn_headers=header, cudnn_libraries=cudnn("9.1.0")["cudnn_libraries"])
    )
    assert not older.cudnn
    newer = plan(
        machine(RTX_4090, toolkits=(toolkit("12.4"),), cudnn_headers=header, cudnn_libraries=cudnn("9.8.0")["cudnn_libraries"])
    )
    assert newer.cudnn
    assert "cudnn-differ" in notes(newer)


def test_a_library_that_tells_its_major_alone_agrees_with_it() -> None:
    header = cudnn("9.1.0")["cudnn_headers"]
    vague = CudnnLibrary(via="glob", directory="/usr/lib", file="/usr/lib/libcudnn.so.9", version=Version("9"))
    made = plan(machine(RTX_4090, toolkits=(toolkit("12.4"),), cudnn_headers=header, cudnn_libraries=(vague,)))
    assert made.cudnn
    assert "cudnn-differ" not in notes(made)


def test_of_two_headers_the_toolkits_own_is_taken() -> None:
    root = "/usr/local/cuda-11.8"
    headers = (
        CudnnHeader(via="glob", directory="/usr/include", version=Version("8.9.7")),
        CudnnHeader(via="glob", directory=f"{root}/include", version=Version("8.6.0")),
    )
    libraries = (
        *cudnn("8.9.7")["cudnn_libraries"],
        CudnnLibrary(via="glob", directory=f"{root}/lib64", file=f"{root}/lib64/libcudnn.so.8.6.0", version=Version("8.6.0")),
    )
    made = plan(machine(gpu("RTX 3090", "8.6"), toolkits=(toolkit("11.8"),), cudnn_headers=headers, cudnn_libraries=libraries))
    assert made.decision("cudnn").value == "8.6.0"
    assert "first" in why_not(made, "cudnn", "8.9.7")


def test_the_cudnn_of_another_toolkit_is_left_alone() -> None:
    root = "/usr/local/cuda-11.8"
    parts = cudnn("8.9.7", f"{root}/include", f"{root}/lib64")
    made = plan(machine(RTX_4090, toolkits=(toolkit("12.4"), toolkit("11.8")), **parts))
    assert not made.cudnn
    assert "another toolkit" in because(made, "cudnn")


def test_cudnn_elsewhere_is_linked_to_and_in_the_run_path() -> None:
    made = plan(machine(H200, toolkits=(toolkit("13.0"),), **cudnn("9.14.0", "/home/me/a b/include", "/home/me/a b/lib")))
    assert value_of(made, "INCLUDE_DIRS")[0] == ".caffeup/deps/cudnn-include"
    assert ".caffeup/deps/cudnn-lib" in made.run_paths
    assert {"deps/cudnn-include", "deps/cudnn-lib"} <= {one.name for one in made.links}


def test_a_cudnn_without_code_for_the_card_is_off() -> None:
    made = plan(machine(RTX_5090, toolkits=(toolkit("12.4"),), **cudnn("9.1.0")))
    assert not made.cudnn
    assert "9.7 or newer" in because(made, "cudnn")
    assert plan(machine(RTX_4090, toolkits=(toolkit("11.5"),), **cudnn("8.2.4"))).cudnn


def test_a_tree_for_the_first_cudnn_goes_without() -> None:
    made = plan(machine(H200, toolkits=(toolkit("13.0"),), **cudnn("9.14.0")), tree(features=("cudnn", "cudnn-before-4")))
    assert not made.cudnn
    assert "1 to 3" in because(made, "cudnn")


def test_all_asks_cudnn_for_no_certain_gpu() -> None:
    assert plan(machine(toolkits=(toolkit("12.8"),), **cudnn("9.14.0")), arch=("all",)).cudnn
    assert not plan(machine(toolkits=(toolkit("12.8"),), **cudnn("9.14.0")), arch=("6.1",)).cudnn


def test_a_library_that_the_toolkits_own_hides_is_not_counted_on() -> None:
    root = "/usr/local/cuda-12.4"
    parts = cudnn("9.5.0")
    own = CudnnLibrary(via="glob", directory=f"{root}/lib64", file=f"{root}/lib64/libcudnn.so.8.9.7", version=Version("8.9.7"))
    here = machine(RTX_4090, toolkits=(toolkit("12.4"),), **parts)
    made = plan(without(here, cudnn_libraries=(*here.cudnn_libraries, own)))
    assert not made.cudnn


CONDA = "/home/me/miniconda3"


def conda_python(**changes: Any) -> Python:
    values: dict[str, Any] = {"executable": f"{CONDA}/bin/python3", "kind": PythonKind.CONDA, "boost_python_dir": f"{CONDA}/lib"}
    return python("3.12.1", **{**values, **changes})


def test_condas_folders_are_never_named_unless_asked_for() -> None:
    parts = cudnn("9.5.0", f"{CONDA}/include", f"{CONDA}/lib")
    here = machine(RTX_4090, toolkits=(toolkit("12.4"),), pythons=(conda_python(), python()), **parts)
    made = plan(here)
    assert not made.cudnn
    assert "--prefix" in because(made, "cudnn")
    assert made.python == "/usr/bin/python3"
    assert not any(CONDA in one.target for one in made.links)
    asked = plan(without(here, prefixes=(CONDA,)))
    assert asked.cudnn
    assert asked.python == f"{CONDA}/bin/python3"


def test_a_toolkit_of_conda_comes_after_others_and_is_linked_to_in_parts() -> None:
    root = f"{CONDA}/envs/cuda"
    target = f"{root}/targets/x86_64-linux"
    of_conda = toolkit(
        "12.6",
        root,
        layout=ToolkitLayout.CONDA,
        include_dirs=(f"{target}/include",),
        library_dirs=(f"{target}/lib", f"{root}/lib"),
    )
    both = plan(machine(RTX_4090, toolkits=(of_conda, toolkit("12.4"))))
    assert both.decision("toolkit").value.startswith("CUDA 12.4")
    assert "conda" in why_not(both, "toolkit", "12.6")
    alone = plan(machine(RTX_4090, toolkits=(of_conda,)))
    assert not alone.conflicts
    assert [(one.name, one.target) for one in alone.links] == [
        ("cuda/bin", f"{root}/bin"),
        ("cuda/include", f"{target}/include"),
        ("cuda/lib64", f"{target}/lib"),
    ]
    assert alone.run_paths == (".caffeup/cuda/lib64",)


def test_tf32_is_for_cudnn_8_and_newer() -> None:
    here = machine(RTX_4090, toolkits=(toolkit("12.4"),), **cudnn("9.1.0"))
    assert "-DCAFFEUP_TF32=1" in value_of(plan(here, tf32=True), "COMMON_FLAGS")
    assert "-DCAFFEUP_TF32=1" not in value_of(plan(here), "COMMON_FLAGS")


def test_cudnn_off_and_on_by_request() -> None:
    good = machine(H200, toolkits=(toolkit("13.0"),), **cudnn("9.14.0"))
    assert not plan(good, cudnn=Switch.OFF).cudnn
    assert plan(good, cudnn=Switch.ON).cudnn
    assert ids(plan(machine(H200, toolkits=(toolkit("13.0"),)), cudnn=Switch.ON)) == {"cudnn-unusable"}
    assert ids(plan(machine(), cudnn=Switch.ON)) == {"cudnn-without-cuda"}
