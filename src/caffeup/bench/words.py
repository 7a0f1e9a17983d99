"""Figures of a measurement in words."""

from __future__ import annotations

from caffeup.gpu.words import mib
from caffeup.model.bench import BenchReport, Row


def ms(value: float) -> str:
    """Milliseconds with the digits that mean something: ``0.046``, ``7.08``, ``1053``."""
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def runs_words(report: BenchReport) -> str:
    """``medians of 3 runs``."""
    most = "up to " if report.stopped else ""
    return f"medians of {most}{report.repeat} runs" if report.repeat > 1 else "one run"


def memory_words(row: Row) -> str:
    """``812 MiB of GPU memory``."""
    of = {"process": "of GPU memory", "gpu": "of GPU memory, by how it filled up", "host": "of memory"}
    return f"{mib(row.memory_bytes)} {of.get(row.memory_of, '')}".rstrip()


def gpu_words(row: Row) -> str:
    """``1755 of 1980 MHz, up to 41 °C, 210 W``."""
    if row.gpu is None:
        return ""
    seen = row.gpu
    words = []
    if seen.clock_mhz is not None:
        lowest = f" (lowest {seen.clock_lowest_mhz})" if seen.clock_lowest_mhz not in (None, seen.clock_mhz) else ""
        most = f" of {seen.clock_max_mhz}" if seen.clock_max_mhz is not None else ""
        words.append(f"{seen.clock_mhz}{lowest}{most} MHz")
    words += [f"up to {seen.temperature} °C"] if seen.temperature is not None else []
    words += [f"{seen.power_watts:.0f} W"] if seen.power_watts is not None else []
    words += [f"slowed by {', '.join(seen.slowed_by)}"] if seen.slowed_by else []
    return ", ".join(words)
