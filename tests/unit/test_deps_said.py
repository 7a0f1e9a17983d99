"""What package managers print while they work, as numbers and words for a display."""

from __future__ import annotations

import pytest

from caffeup.deps.said import Said


def after(*lines: str, packages: int = 20) -> tuple[int, object, str]:
    said = Said(packages)
    for line in lines:
        said.hear(line)
    status = said.status(1.0)
    return status.done, status.total, status.current


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "Get:12 http://mirror.example/debian bookworm/main amd64 libboost1.74-dev amd64 1.74.0+ds1-21 [9508 kB]",
            (12, 20, "downloading libboost1.74-dev"),
        ),
        ("Unpacking libfoo-dev:amd64 (1.2-3) ...", (1, 20, "unpacking libfoo-dev")),
        ("Unpacking libfoo (1.2-3) over (1.2-2) ...", (1, 20, "unpacking libfoo")),
        ("Setting up libc6:amd64 (2.36-9) ...", (1, 20, "setting up libc6")),
        ("Processing triggers for libc-bin (2.36-9+deb12u10) ...", (0, 20, "Processing triggers for libc-bin (2.36-9+deb12u10)")),
        ("(3/40): lmdb-devel-0.9.33-2.fc41.x86_64.rpm   1.2 MB/s |  75 kB     00:00", (3, 40, "lmdb-devel-0.9.33-2.fc41.x86_64.rpm 1.2 MB/s")),
        ("  Installing       : lmdb-devel-0.9.33-2.fc41.x86_64                   3/40 ", (3, 40, "Installing : lmdb-devel-0.9.33-2.fc41.x86_64")),
        ("[ 3/40] Installing lmdb-devel-0:0.9 100% |  75.1 KiB/s | 75 KiB | 00m01s", (3, 40, "Installing lmdb-devel-0:0.9")),
        ("(3/40) installing lmdb", (3, 40, "installing lmdb")),
        ("(3/40) Installing: lmdb-devel-0.9.30-1.x86_64 [..done]", (3, 40, "Installing: lmdb-devel-0.9.30-1.x86_64 [..done]")),
        ("nothing that is known 2024/05", (0, 20, "nothing that is known 2024/05")),
        ("", (0, 20, "")),
    ],
)  # fmt: skip
def test_a_line(line: str, expected: tuple[int, int, str]) -> None:
    assert after(line) == expected


def test_each_phase_is_counted_for_itself() -> None:
    lines = [f"Unpacking p{number} (1) ..." for number in range(5)] + ["Setting up p0 (1) ...", "Setting up p1 (1) ..."]
    assert after(*lines, packages=5) == (2, 5, "setting up p1")


def test_the_bar_goes_on_over_all_phases() -> None:
    said, shares = Said(2), []
    for line in (
        *(f"Get:{number} http://m/d bookworm/main amd64 p{number} amd64 1 [9 kB]" for number in (1, 2)),
        *(f"{word} p{number} (1) ..." for number in (1, 2) for word in ("Unpacking", "Setting up")),
        "Unpacking p3 (1) ...",
    ):
        said.hear(line)
        shares.append(said.status(0).share or 0.0)
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_nothing_is_counted_where_nothing_is_installed() -> None:
    assert after("Hit:1 http://mirror.example/debian bookworm InRelease", packages=0) == (
        0,
        None,
        "Hit:1 http://mirror.example/debian bookworm InRelease",
    )


def test_a_line_of_any_length_fits_on_a_screen() -> None:
    assert len(after("x" * 10_000)[2]) <= 60
