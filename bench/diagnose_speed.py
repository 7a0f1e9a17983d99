"""How fast logs are diagnosed: MB per second of processor time on generated logs of several kinds, and the memory it takes.

Run from the checkout: ``python bench/diagnose_speed.py [MEGABYTES] [KIND…]``. With ``bounds`` as a kind: a log of 2 GB, a line of
100 MB, 200 MB of errors that never repeat, and bytes that are no text.
"""

from __future__ import annotations

import itertools
import random
import resource
import sys
import time
from collections.abc import Iterator

from caffeup.diagnose.diagnose import diagnose
from caffeup.diagnose.read import read
from caffeup.facts.load import load_facts
from caffeup.facts.tables import Facts

FLAGS = (
    "-MMD -MP -pthread -fPIC -DCAFFE_VERSION=1.0.0 -DNDEBUG -O2 -DUSE_OPENCV -DCPU_ONLY "
    "-I/usr/include/python3.11 -I/usr/local/include -I.build_release/src -I./src -I./include -Wall -Wno-sign-compare"
)
SWITCH = (
    "./include/caffe/util/cudnn.hpp:21:10: warning: enumeration value ‘CUDNN_STATUS_{}’ not handled in switch [-Wswitch]\n"
    "   21 |   switch (status) {{\n"
)
WARNING = "In file included from ./include/caffe/common.hpp:19,\n                 from ./include/caffe/blob.hpp:8,\n" + "".join(
    SWITCH.format(name) for name in ("VERSION_MISMATCH", "DEPRECATED", "LICENSE_ERROR_OLD", "SUBLIBRARY_LOADING_FAILED")
)


def quiet() -> str:
    """Make without its commands, and runtest."""
    built = "".join(f"CXX src/caffe/layers/layer_{i}_layer.cpp\n" for i in range(300))
    return built + "".join(
        f"[ RUN      ] LayerTest/{i}.TestForward\n[       OK ] LayerTest/{i}.TestForward ({i} ms)\n" for i in range(300)
    )


def wordy() -> str:
    """Make with its commands, and a warning here and there."""
    return "".join(
        f"g++ src/caffe/l{i}.cpp {FLAGS} -c -o .build_release/l{i}.o\n" + (WARNING if i % 20 == 0 else "") for i in range(400)
    )


def training() -> str:
    """What ``caffe train`` says."""
    return "".join(
        f"I1201 10:{i // 60 % 60:02d}:{i % 60:02d}.000{i % 1000:03d} 18740 solver.cpp:239] Iteration {i * 20} (2.1 iter/s, "
        f"9.5s/20 iters), loss = {8 / (i + 1):.5f}\n"
        f"I1201 10:{i // 60 % 60:02d}:{i % 60:02d}.000{i % 1000:03d} 18740 solver.cpp:258]     Train net output #0: mbox_loss = "
        f"{7 / (i + 1):.5f} (* 1 = {7 / (i + 1):.5f} loss)\n"
        for i in range(1000)
    )


def failing() -> str:
    """Nothing but errors, which differ in their numbers."""
    return "".join(
        f"src/caffe/l{i}.cpp:{i}:5: error: ‘thing_{i}’ was not declared in this scope\n  {i} |  thing;\n" for i in range(400)
    )


def varied() -> str:
    """Nothing but errors, which differ in their words: far more of them than are remembered."""
    names = ["".join(letters) for letters in itertools.product("abcdefghijklm", repeat=4)]
    return "".join(
        f"src/caffe/{name}.cpp:7:5: error: ‘thing_{name}’ was not declared in this scope\n"
        f"io.cpp:(.text+0x286a): undefined reference to `caffe::{name}::New()'\n"
        for name in names
    )


def chunks(text: str, size: int) -> Iterator[bytes]:
    """About ``size`` bytes of this text, over and over."""
    data = text.encode()
    data *= max(1, (1 << 20) // len(data))
    for _ in range(max(1, size // len(data))):
        yield data


def never_alike(size: int) -> Iterator[bytes]:
    """Errors of which no two have the same words."""
    names = map("".join, itertools.product("abcdefghijklmnopqrstuvwxyz", repeat=5))
    made = 0
    while made < size:
        lines = [
            f"src/caffe/{name}.cpp:7:5: error: '{name}' was not declared in this scope" for name in itertools.islice(names, 1000)
        ]
        chunk = ("\n".join(lines) + "\n").encode()
        yield chunk
        made += len(chunk)


def bounds() -> Iterator[tuple[str, Iterator[bytes]]]:
    """Logs that are too much of something."""
    yield "2 GB", chunks(wordy(), 2 << 30)
    yield "one line", (b"src/a.cpp:1:1: error: " + b"x" * (1 << 20) if i == 0 else b"x" * (1 << 20) for i in range(100))
    yield "no two", never_alike(200 << 20)
    noise = random.Random(1).randbytes(1 << 20)  # noqa: S311
    yield "no text", (noise for _ in range(64))
    yield "escapes", (b"\x1b]0;" + b"\x1b[31merror: \x9b" * 4096 + b"\n" for _ in range(256))
    yield "returns", (b"[ 10%] error\r" * 4096 for _ in range(1024))


def measure(name: str, data: Iterator[bytes], facts: Facts) -> None:
    """One line of the table."""
    total = 0

    def counted() -> Iterator[bytes]:
        nonlocal total
        for chunk in data:
            total += len(chunk)
            yield chunk

    start = time.process_time()
    found = diagnose(read(counted()), facts)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{name:9} {total / 1e6:7.0f} MB  {seconds:6.2f} s  {total / 1e6 / seconds:6.1f} MB/s  {len(found)} found  {peak:.0f} MiB"
    )


def main() -> None:
    """Measure and print."""
    words = sys.argv[1:]
    size = int(words.pop(0)) << 20 if words and words[0].isdigit() else 64 << 20
    facts = load_facts()
    diagnose(["error"], facts)  # the catalogue is made once
    for kind in (quiet, wordy, training, failing, varied):
        if not words or kind.__name__ in words:
            measure(kind.__name__, chunks(kind(), size), facts)
    if "bounds" in words:
        for name, data in bounds():
            measure(name, data, facts)


if __name__ == "__main__":
    main()
