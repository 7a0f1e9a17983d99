from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Optional

import pytest

from caffeup.build.run import Build
from caffeup.model.base import ComputeCapability
from caffeup.model.machine import Gpu
from caffeup.model.outcome import Check
from caffeup.model.plan import Plan, Request
from caffeup.verify.gpu import gpu_checks
from caffeup.verify.largenet import net
from caffeup.verify.site import Site

TINY = Path(__file__).resolve().parents[1] / "trees" / "tiny"
GXX = shutil.which("g++") or ""
pytestmark = pytest.mark.skipif(not (GXX and shutil.which("make")), reason="needs make and g++")
H200 = Gpu(index=0, name="NVIDIA H200", compute_capability=ComputeCapability(9, 0), via="test")
OLD = Gpu(index=1, name="NVIDIA Quadro K620", compute_capability=ComputeCapability(5, 0), via="test")
ONE = {"batch": 1, "memory": 40 << 20, "forward": "1.000e-07", "backward": "3.000e-06"}
MANY = {"batch": 32, "memory": 300 << 20, "forward": "2.000e-07", "backward": "1.000e-06"}
PASSES = {"before": 500 << 20, "left": 2 << 20, "rows": [ONE, MANY]}


def fatbin(*codes: str) -> bytes:
    """One compiled file: ``sass 90``, ``ptx 75``."""
    body = b""
    for code in codes:
        kind, arch = code.split()
        body += struct.pack(
            "<HHIQIIHHIIIQQQ", {"ptx": 1, "sass": 2}[kind], 257, 64, 8, 0, 0, 8, 1, int(arch), 0, 0, 17, 0, 0
        ) + bytes(8)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tiny"
    shutil.copytree(TINY, root)
    (root / "Makefile.config").write_text("BUILD_DIR := build\nDISTRIBUTE_DIR := distribute\nQ ?= @\n")
    return root


def site_of(
    root: Path,
    *files: bytes,
    says: str = "I1201 12:00:00.1 9 common.cpp:180] Name:                          NVIDIA H200",
    cudnn: bool = True,
    tf32: bool = False,
    ptx: Optional[ComputeCapability] = None,
) -> Site:
    """A tree whose library holds these compiled files, and whose program says this."""
    plan = Plan(
        tree=str(root), fork="tiny", request=Request(tf32=tf32), gpu=True, cudnn=cudnn, sass=(ComputeCapability(9, 0),), ptx=ptx
    )  # fmt: skip
    site = Site(Build(root=str(root), plan=plan, env={"PATH": os.environ["PATH"]}))
    for product in (site.library, site.program):
        product.parent.mkdir(parents=True, exist_ok=True)
    (root / "code").write_bytes(b"".join(files))
    (root / "code.s").write_text('.section .nv_fatbin,"a"\n.incbin "code"\n' if files else "\n")
    subprocess.run([GXX, "-shared", "-nostdlib", "code.s", "-o", str(site.library)], cwd=root, check=True)
    site.program.write_text(f'#!/bin/sh\necho "$*" >> {root}/asked\necho "{says}"\nexit {int("Check" in says)}\n')
    site.program.chmod(0o755)
    return site


def python_that(root: Path, says: object, *, cudnn: object = None) -> str:
    """A stand-in for the Python that can import caffe: answers for each engine."""
    path = root.parent / "python"
    path.write_text(
        f"#!/bin/sh\ngrep -q CUDNN $4 && echo 'caffeup:{json.dumps(cudnn or says)}' || echo 'caffeup:{json.dumps(says)}'\n"
    )
    path.chmod(0o755)
    return str(path)


def by_name(checks: list[Check]) -> dict[str, Check]:
    return {check.name: check for check in checks}


def test_all_is_well(tree: Path) -> None:
    site = site_of(tree, fatbin("sass 90", "ptx 90"), fatbin("sass 90"))
    checks = by_name(gpu_checks(site, (H200,), python_that(tree, PASSES)))
    assert [(check.name, check.ok) for check in checks.values()] == [
        ("GPU code", True), ("device_query", True), ("GPU against CPU", True), ("GPU against CPU, cuDNN", True)
    ]  # fmt: skip
    assert checks["GPU code"].result == "PTX 9.0, SASS 9.0"
    assert checks["device_query"].result == "NVIDIA H200"
    assert checks["GPU against CPU"].result == "differ by 2e-07 forward, 3e-06 backward; 300 MiB at batch 32, 2 MiB left after it"
    assert list((tree / ".caffeup/tmp").iterdir()) == []


def test_one_file_without_code_for_the_gpu_is_enough(tree: Path) -> None:
    site = site_of(tree, fatbin("sass 90"), fatbin("sass 86", "ptx 86"), fatbin("sass 80"))
    check = gpu_checks(site, (H200,), "")[0]
    assert not check.ok
    assert (
        check.result
        == "1 of 3 compiled files have nothing for NVIDIA H200 (9.0); they hold PTX 8.6, SASS 8.0, SASS 8.6, SASS 9.0"
    )


def test_a_gpu_that_the_plan_leaves_out_is_not_asked_for(tree: Path) -> None:
    assert gpu_checks(site_of(tree, fatbin("sass 90")), (OLD, H200), "")[0].ok


def test_ptx_alone_is_told(tree: Path) -> None:
    site = site_of(tree, fatbin("ptx 75"), ptx=ComputeCapability(7, 5))
    assert gpu_checks(site, (H200,), "")[0].result == "PTX 7.5; the driver compiles it for NVIDIA H200 (9.0) at the first start"


@pytest.mark.parametrize("files", [(), (b"noise",)])
def test_a_library_without_code(tree: Path, files: tuple[bytes, ...]) -> None:
    assert not gpu_checks(site_of(tree, *files), (H200,), "")[0].ok


def test_without_a_gpu_the_library_is_compared_with_the_plan(tree: Path) -> None:
    checks = by_name(gpu_checks(site_of(tree, fatbin("sass 75")), (), ""))
    assert checks["GPU code"].result == "1 of 1 compiled files have nothing for compute capability 9.0; they hold SASS 7.5"
    assert "engine: CAFFE" in checks["GPU"].result


def test_without_cudnn_no_engine_is_spoken_of(tree: Path) -> None:
    site = site_of(tree, fatbin("sass 90"), cudnn=False)
    assert "engine" not in by_name(gpu_checks(site, (), ""))["GPU"].result
    assert len(gpu_checks(site, (H200,), python_that(tree, PASSES))) == 3


def test_a_program_that_finds_no_gpu_ends_it(tree: Path) -> None:
    site = site_of(tree, fatbin("sass 90"), says="F1201 12:00:00.1 9 caffe.cpp:9] Check failed: error == cudaSuccess (35 vs. 0)")
    checks = gpu_checks(site, (H200,), python_that(tree, PASSES))
    assert [check.ok for check in checks] == [True, False]
    assert "Check failed" in checks[1].result


@pytest.mark.parametrize("wrong", ["3.000e-02", "inf"])
def test_values_that_are_wrong_only_with_cudnn_and_one_batch(tree: Path, wrong: str) -> None:
    rows = [{**ONE, "backward": wrong}, MANY]
    checks = gpu_checks(site_of(tree, fatbin("sass 90")), (H200,), python_that(tree, PASSES, cudnn={**PASSES, "rows": rows}))
    assert [check.ok for check in checks] == [True, True, True, False]


@pytest.mark.parametrize("tf32", [True, False])
def test_tf32_is_allowed_where_it_was_asked_for(tree: Path, tf32: bool) -> None:
    rows = [{**ONE, "forward": "2.000e-03"}]
    python = python_that(tree, PASSES, cudnn={**PASSES, "rows": rows})
    assert gpu_checks(site_of(tree, fatbin("sass 90"), tf32=tf32), (H200,), python)[-1].ok is tf32


def test_a_crash_is_shown(tree: Path) -> None:
    python = python_that(tree, PASSES)
    Path(python).write_text("#!/bin/sh\necho 'F1201 cudnn_conv_layer.cu:77] Check failed: status (5003 vs. 0)'\nkill -ABRT $$\n")
    checks = gpu_checks(site_of(tree, fatbin("sass 90")), (H200,), python)
    assert not checks[-1].ok
    assert "5003" in checks[-1].result


def test_without_pycaffe_the_program_runs_every_net(tree: Path) -> None:
    checks = gpu_checks(site_of(tree, fatbin("sass 90")), (H200,), "")
    assert [check.ok for check in checks] == [True] * 4
    assert (tree / "asked").read_text().count("time -model=") == 4


def test_the_nets_name_an_engine_in_every_layer_that_has_one() -> None:
    text = net("CUDNN", 32)
    assert "ENGINE" not in text
    assert "BATCH" not in text
    assert text.count("engine: CUDNN") == 7
    assert "dim: 32 dim: 3" in text
