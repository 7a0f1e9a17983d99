from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caffeup.model.base import ComputeCapability
from caffeup.verify.fatbin import Code, Kind, parse_fatbin, read_fatbins

NVCC = shutil.which("nvcc") or ""
needs_nvcc = pytest.mark.skipif(not NVCC, reason="needs nvcc")
# As nvcc 13.0 wrote them: SASS 7.5 as it is; PTX 9.0 and SASS 12.0a and 10.0f compressed, their headers longer.
SASS_75 = "0200010140000000e8150000000000000000000000000000080001004b0000000000000000000000110000000000000000000000000000000000000000000000"
PTX_90 = "0100010150000000f802000000000000f402000040000000000009005a0000000000000000000000118000000000000000000000000000000d09000000000000"
SASS_120A = "0200010170000000c004000000000000bc0400004000000008000100780000000000000000000000118010010000000000000000000000009814000000000000"
SASS_100F = "0200010170000000c004000000000000b90400004000000008000100640000000000000000000000118020010000000000000000000000009814000000000000"


def entry(header: str) -> bytes:
    """An entry with that header, and as much behind it as it says."""
    raw = bytes.fromhex(header)
    length, size = struct.unpack_from("<IQ", raw, 4)
    return raw + bytes(length - len(raw) + size)


def container(*headers: str) -> bytes:
    body = b"".join(entry(header) for header in headers)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def words(data: bytes) -> list[list[str]]:
    return [[str(code) for code in one] for one in parse_fatbin(data)]


def test_every_container_is_read_by_itself() -> None:
    data = container(SASS_75, PTX_90) + bytes(8) + container(SASS_120A, SASS_100F)
    assert words(data) == [["SASS 7.5", "PTX 9.0"], ["SASS 12.0a", "SASS 10.0f"]]


def test_other_kinds_are_passed_over() -> None:
    other = "40" + PTX_90[2:]
    assert words(container(other, SASS_75)) == [["SASS 7.5"]]


def test_a_section_that_ends_too_soon_gives_what_it_has() -> None:
    data = container(SASS_75, PTX_90)
    assert words(data[:-100]) == [["SASS 7.5", "PTX 9.0"]]
    assert words(data[: 16 + 30]) == [[]]
    assert words(data[:10]) == []


@given(st.binary(max_size=400), st.integers(0, 200), st.binary(max_size=40))
def test_no_bytes_are_a_surprise(noise: bytes, at: int, change: bytes) -> None:
    parse_fatbin(noise)
    data = container(PTX_90, SASS_75)
    parse_fatbin(data[:at] + change + data[at + len(change) :])


@pytest.mark.parametrize(
    ("kind", "made_for", "suffix", "runs", "runs_not"),
    [
        ("SASS", "8.0", "", ["8.0", "8.6", "8.9"], ["7.5", "9.0", "12.0"]),
        ("SASS", "8.6", "", ["8.6", "8.9"], ["8.0"]),
        ("SASS", "9.0", "a", ["9.0"], ["10.0", "8.9"]),
        ("SASS", "10.0", "f", ["10.0", "10.3"], ["12.0", "9.0"]),
        ("PTX", "7.5", "", ["7.5", "8.6", "12.0"], ["7.0", "5.2"]),
        ("PTX", "9.0", "a", ["9.0"], ["10.0"]),
        ("PTX", "10.0", "f", ["10.3"], ["12.0"]),
    ],
)
def test_what_runs_where(kind: str, made_for: str, suffix: str, runs: list[str], runs_not: list[str]) -> None:
    code = Code(kind=Kind(kind), made_for=ComputeCapability.parse(made_for), suffix=suffix)
    assert [gpu for gpu in (*runs, *runs_not) if code.runs_on(ComputeCapability.parse(gpu))] == runs


def test_what_is_no_library_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("INPUT(-lcaffe)")
    (tmp_path / "cut").write_bytes(Path("/bin/sh").read_bytes()[:80])
    assert [read_fatbins(tmp_path / name) for name in ("text", "cut", "gone", ".")] == [(), (), (), ()]


@needs_nvcc
@pytest.mark.parametrize("options", [(), ("--no-compress",)], ids=["as it comes", "not compressed"])
def test_what_nvcc_writes(tmp_path: Path, options: tuple[str, ...]) -> None:
    listed = subprocess.run([NVCC, "--list-gpu-code"], capture_output=True, text=True, check=True).stdout.split()
    codes = [one.removeprefix("sm_") for one in listed][:2]
    (tmp_path / "k.cu").write_text(
        "__global__ void k(float* x) { x[threadIdx.x] *= 2; }\nvoid go(float* x) { k<<<1, 32>>>(x); }\n"
    )
    wanted = [f"-gencode=arch=compute_{one},code=sm_{one}" for one in codes]
    wanted.append(f"-gencode=arch=compute_{codes[-1]},code=compute_{codes[-1]}")
    made = subprocess.run(
        [NVCC, "-c", *wanted, *options, "k.cu", "-o", "k.o"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"this nvcc cannot: {made.stderr[:200]}")
    (found,) = read_fatbins(tmp_path / "k.o")
    capabilities = [ComputeCapability.parse(one) for one in codes]
    assert {(str(code.kind), code.made_for, code.suffix) for code in found} == {
        *(("SASS", one, "") for one in capabilities),
        ("PTX", capabilities[-1], ""),
    }


@given(st.integers(0, 4000), st.binary(min_size=1, max_size=8))
def test_a_damaged_library_is_no_surprise(tmp_path_factory: pytest.TempPathFactory, at: int, change: bytes) -> None:
    data = Path("/bin/sh").read_bytes()
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(data[:at] + change + data[at + len(change) :])
    read_fatbins(path)
