"""Laws of the tables, row by row, and the questions that may be asked of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Optional

import msgspec
import pytest
from packaging.version import Version

from caffeup.errors import UsageError
from caffeup.facts.load import load_facts, merge
from caffeup.facts.ranges import BadRange, Range
from caffeup.facts.toolchain import CompilerFile, CudaFile, CudnnFile, Gpu, GpuFile
from caffeup.model.base import ComputeCapability
from caffeup.model.fix import Condition, Fix

FACTS = load_facts()
TABLES: dict[str, Any] = {"gpus": GpuFile, "cuda": CudaFile, "compilers": CompilerFile, "cudnn": CudnnFile}
ROWS = [
    pytest.param(name, field, row, id=f"{name}.{field}#{row.id}")
    for name, kind in TABLES.items()
    for field in kind.__struct_fields__
    for row in getattr(FACTS.reader.table(name, kind), field)
]
RANGES = {
    "gpu": ("cuda", "cudnn"),
    "jetson": ("cuda",),
    "cuda": ("cuda",),
    "host_compiler": ("cuda", "gcc"),
    "cudnn": ("cudnn", "cuda"),
}
FIX_RANGES = tuple(
    name
    for name in Condition.__struct_fields__
    if name not in ("mode", "fork", "distro", "arch", "tree", "wish", "place_for_edit")
)


def cc(text: str) -> ComputeCapability:
    return ComputeCapability.parse(text)


@pytest.mark.parametrize(("name", "field", "row"), ROWS)
def test_every_row_has_a_source(name: str, field: str, row: Any) -> None:
    assert row.source
    assert all(text.strip() for text in row.source)


@pytest.mark.parametrize(("name", "field", "row"), ROWS)
def test_ranges_are_half_open_and_not_empty(name: str, field: str, row: Any) -> None:
    for key in RANGES.get(field, ()):
        assert not getattr(row, key) or Range.parse(getattr(row, key)).text == getattr(row, key)


@pytest.mark.parametrize(("name", "kind"), TABLES.items(), ids=lambda x: x if isinstance(x, str) else "")
def test_ids_are_unique(name: str, kind: Any) -> None:
    table = FACTS.reader.table(name, kind)
    for field in kind.__struct_fields__:
        ids = [row.id for row in getattr(table, field)]
        assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("name", "field", "key"), [("cuda", "cuda", "cuda"), ("compilers", "host_compiler", "cuda"), ("cudnn", "cudnn", "cudnn")]
)
def test_ranges_do_not_overlap(name: str, field: str, key: str) -> None:
    rows = getattr(FACTS.reader.table(name, TABLES[name]), field)
    ranges = sorted((Range.parse(getattr(row, key)) for row in rows), key=lambda one: one.low or Version("0"))
    for one, two in zip(ranges, ranges[1:]):
        assert one.high is not None
        assert two.low is not None
        assert one.high <= two.low


def test_compute_capabilities_named_elsewhere_are_rows() -> None:
    for row in FACTS.reader.table("gpus", GpuFile).jetson:
        assert FACTS.known(row.compute_capability)
    for other in FACTS.reader.table("cudnn", CudnnFile).cudnn:
        assert FACTS.known(cc(other.cc))


def test_no_two_gpus_share_a_card() -> None:
    cards = [card for row in FACTS.reader.table("gpus", GpuFile).gpu for card in row.cards]
    assert len(cards) == len(set(cards))


def test_a_release_lies_in_its_own_range_and_needs_no_newer_driver_than_it_brings() -> None:
    for row in FACTS.reader.table("cuda", CudaFile).cuda:
        assert Version(row.id) in Range.parse(row.cuda)
        if row.least_driver:
            assert Version(row.least_driver) <= Version(row.driver)


@pytest.mark.parametrize("fix", FACTS.fixes, ids=lambda fix: fix.id)
def test_every_fix_says_when_or_what_it_looks_like(fix: Fix) -> None:
    assert fix.source
    conditions = [getattr(fix.when, name) for name in Condition.__struct_fields__]
    files = any(type(one).__name__ == "NewFile" for one in fix.remedy)
    assert any(conditions) or fix.symptoms or files
    for name in FIX_RANGES:
        if getattr(fix.when, name) is not None:
            Range.parse(getattr(fix.when, name))
    assert fix.when.mode in (None, "cpu", "gpu")
    for pattern in (*fix.symptoms, *fix.also):
        re.compile(pattern)


@pytest.mark.parametrize(
    "text", ["<=12.3", "==9.0", "~=9.0", ">9.0", "!=9", "9.0", "", ">=9,<9", ">=9,<8", ">=1,>=2", ">=x", ">=1,,<2"]
)
def test_a_range_that_is_not_half_open_is_refused(text: str) -> None:
    with pytest.raises(BadRange):
        Range.parse(text)


def test_a_range_contains_its_patch_releases() -> None:
    twelve_three = Range.parse(">=12.3,<12.4")
    assert Version("12.3.2") in twelve_three
    assert Version("12.4") not in twelve_three
    assert Version("12.10") in Range.parse(">=12.9")


def test_compute_capabilities_of_a_release() -> None:
    thirteen = FACTS.compute_capabilities(Version("13.0.88"))
    assert thirteen[0] == cc("7.5")
    assert thirteen[-1] == cc("12.1")
    assert cc("10.1") not in thirteen
    assert cc("2.0") in FACTS.compute_capabilities(Version("8.0.61"))
    assert cc("2.0") not in FACTS.compute_capabilities(Version("9.0"))
    assert cc("8.6") not in FACTS.compute_capabilities(Version("11.0"))
    assert list(thirteen) == sorted(thirteen)


def test_toolkits_and_drivers_of_a_gpu() -> None:
    assert str(FACTS.toolkits_for(cc("6.1"))) == ">=8.0,<13.0"
    assert FACTS.toolkits_for(cc("99.9")) is None
    assert FACTS.last_driver_for(cc("6.1")) == 580
    assert FACTS.last_driver_for(cc("3.7")) == 470
    assert FACTS.last_driver_for(cc("9.0")) is None


@pytest.mark.parametrize(
    ("cuda", "driver"),
    [
        ("12.4.1", "525.60.13"),
        ("11.0", "450.36.06"),
        ("11.8", "450.80.02"),
        ("8.0", "367.48"),
        ("13.7", "580.65.06"),
        ("99.0", ""),
    ],
)
def test_minimum_driver(cuda: str, driver: str) -> None:
    assert FACTS.minimum_driver(Version(cuda)) == driver


@pytest.mark.parametrize(
    ("cuda", "gcc"),
    [("8.0", 5), ("9.1", 6), ("10.0", 7), ("10.2", 8), ("11.0", 9), ("11.5", 11), ("12.4", 13), ("13.0", 15), ("6.5", None)],
)
def test_max_gcc(cuda: str, gcc: Optional[int]) -> None:
    assert FACTS.max_gcc(Version(cuda)) == gcc


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("NVIDIA GeForce RTX 4090", "8.9"),
        ("NVIDIA GeForce GTX 1080 Ti", "6.1"),
        ("NVIDIA RTX 6000 Ada Generation", "8.9"),
        ("Quadro RTX 6000", "7.5"),
        ("NVIDIA H200", "9.0"),
        ("Tesla V100-SXM2-16GB", "7.0"),
        ("NVIDIA RTX A2000 12GB", "8.6"),
        ("GeForce GTX TITAN X", "5.2"),
        ("NVIDIA TITAN X (Pascal)", "6.1"),
        ("NVIDIA GeForce RTX 5090", "12.0"),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", "8.0"),
        ("something else", None),
        ("", None),
    ],
)
def test_a_card_by_its_name(name: str, capability: Optional[str]) -> None:
    assert FACTS.gpu_by_name(name) == (cc(capability) if capability else None)


def test_jetson_by_its_token() -> None:
    orin = FACTS.jetson_soc("nvidia,tegra234")
    assert orin is not None
    assert orin.compute_capability == cc("8.7")
    assert FACTS.jetson_soc("tegra210") is not None
    assert FACTS.jetson_soc("raspberrypi,4") is None


def test_cudnn_and_what_it_goes_with() -> None:
    assert FACTS.cudnn_supports(Version("9.14"), Version("13.0"), cc("9.0")) is True
    assert FACTS.cudnn_supports(Version("9.14"), Version("12.4"), cc("6.1")) is False
    assert FACTS.cudnn_supports(Version("8.9"), Version("13.0")) is False
    assert FACTS.cudnn_supports(Version("7.6.5"), Version("10.2"), cc("7.5")) is True
    assert FACTS.cudnn_supports(Version("7.6.0"), Version("10.2")) is False
    assert FACTS.cudnn_supports(Version("10.0"), Version("13.0")) is None
    assert FACTS.cudnn_supports(Version("9.1"), Version("12.4"), cc("12.0")) is False
    assert FACTS.cudnn_supports(Version("8.2"), Version("11.4"), cc("8.9")) is True


def test_a_users_folder_adds_and_replaces_rows(tmp_path: Path) -> None:
    (tmp_path / "gpus.toml").write_text(
        '[[gpu]]\nid = "6.1"\nfamily = "Mine"\ncuda = ">=8.0,<14.0"\nsource = ["me"]\n'
        '[[gpu]]\nid = "14.0"\nfamily = "New"\ncuda = ">=14.0"\nsource = ["me"]\n'
    )
    (tmp_path / "fixes").mkdir()
    (tmp_path / "fixes" / "my-own.toml").write_text('id = "my-own"\ntitle = "x"\nsymptoms = ["x"]\nsource = ["me"]\n')
    facts = load_facts((str(tmp_path),))
    assert facts.family(cc("6.1")) == "Mine"
    assert facts.family(cc("14.0")) == "New"
    assert facts.family(cc("7.5")) == "Turing"
    assert facts.fix("my-own") is not None
    assert len(facts.fixes) == len(FACTS.fixes) + 1


@pytest.mark.parametrize(
    "text",
    [
        '[[gpu]]\nid = "6.1"\nfamilly = "x"\n',
        "not toml = = =",
        '[[gpu]]\nid = "6.1"\n',
        "\x00",
        '[[gpu]]\nid = "1.0"\nfamily = "a"\ncuda = ">=1"\nsource = []\n' * 2,
    ],
)
def test_facts_that_cannot_be_read_are_the_users_mistake(tmp_path: Path, text: str) -> None:
    (tmp_path / "gpus.toml").write_text(text)
    with pytest.raises(UsageError):
        load_facts((str(tmp_path),)).known(cc("6.1"))


def test_bytes_that_are_no_text_are_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "gpus.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError):
        load_facts((str(tmp_path),)).known(cc("6.1"))


def test_a_fix_is_named_like_its_file(tmp_path: Path) -> None:
    (tmp_path / "fixes").mkdir()
    (tmp_path / "fixes" / "other.toml").write_text('id = "one"\ntitle = "x"\nsource = ["me"]\n')
    with pytest.raises(UsageError, match=r"one\.toml"):
        _ = load_facts((str(tmp_path),)).fixes


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        load_facts((str(tmp_path / "nowhere"),))


def test_merge_keeps_the_order() -> None:
    one = Gpu(id="1.0", family="a", cuda=">=1", source=("x",))
    two = Gpu(id="2.0", family="b", cuda=">=1", source=("x",))
    merged = merge(GpuFile(gpu=(one, two)), GpuFile(gpu=(msgspec.structs.replace(one, family="c"),)))
    assert [row.family for row in merged.gpu] == ["c", "b"]


def test_the_installed_nvcc_agrees_with_the_table() -> None:
    """Where a toolkit is at hand, its own header says the newest gcc; a row that disagrees is wrong."""
    headers = sorted(Path("/usr/local").glob("cuda-*/include/crt/host_config.h"))
    if not headers:
        pytest.skip("no CUDA toolkit here")
    for header in headers:
        version = Version(header.parents[2].name.removeprefix("cuda-"))
        found = re.search(r"__GNUC__ > (\d+)", header.read_text(errors="replace"))
        if found:
            assert FACTS.max_gcc(version) == int(found[1])
