"""What a layer does to each channel, a factor and a summand, and weights to which that has been done.

numpy computes it where it is installed; without it the same results take ten times as long (two seconds for 100 MB).
"""

from __future__ import annotations

import importlib
import math
from array import array
from collections.abc import Sequence
from typing import NamedTuple

from caffeup.net.wire import floats


class Affine(NamedTuple):
    """``factor * x + summand`` in each channel."""

    factor: tuple[float, ...]
    summand: tuple[float, ...]

    def then(self, after: Affine) -> Affine:
        """Both, one after the other."""
        return Affine(
            tuple(a * b for a, b in zip(self.factor, after.factor)),
            tuple(x * b + c for x, b, c in zip(self.summand, after.factor, after.summand)),
        )


def identity(channels: int) -> Affine:
    """Nothing is done."""
    return Affine((1.0,) * channels, (0.0,) * channels)


def normalization(mean: Sequence[float], variance: Sequence[float], sums: float, eps: float) -> Affine:
    """BatchNorm with stored sums, of which ``sums`` were added up; ``ValueError`` where there is no such root."""
    scale = 1.0 / sums if sums else 0.0
    factor = tuple(1.0 / math.sqrt(value * scale + eps) for value in variance)
    if not all(map(math.isfinite, factor)):
        raise ValueError("its variances are no finite numbers")
    return Affine(factor, tuple(-value * scale * each for value, each in zip(mean, factor)))


def rows_scaled(values: array[float], factors: Sequence[float], repeat: int = 1) -> array[float]:
    """Equally long runs of numbers, each multiplied by a factor; the factors come again and again, ``repeat`` times."""
    row = len(values) // (len(factors) * repeat)
    try:
        np = importlib.import_module("numpy")  # an extra
    except ImportError:
        result = floats(values.typecode)
        view = memoryview(values)
        for at, factor in enumerate(tuple(factors) * repeat):
            result.extend(floats(values.typecode, [value * factor for value in view[at * row : at * row + row]]))
        return result
    runs = np.frombuffer(values, dtype=values.typecode).reshape(repeat, len(factors), row)
    scaled = (runs * np.asarray(factors, dtype="d").reshape(1, -1, 1)).astype(values.typecode)
    result = floats(values.typecode)
    result.frombytes(memoryview(scaled).cast("B"))
    return result
