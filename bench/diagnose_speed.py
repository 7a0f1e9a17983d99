"""How fast logs are diagnosed: MB per second of processor time on generated logs of four kinds, and the memory it takes.

Run from the checkout: ``python bench/diagnose_speed.py [MEGABYTES]``.
"""

from __future__ import annotations

import itertools
import resource
import sys
import time
from collections.abc import Iterator

from caffeup.diagnose.diagnose import diagnose
from caffeup.diagnose.read import read
from caffeup.facts.load import load_facts

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


def main() -> None:
    """Measure and print."""
    size = int(sys.argv[1]) << 20 if len(sys.argv) > 1 else 64 << 20
    facts = load_facts()
    diagnose(["error"], facts)  # the catalogue is made once
    for kind in (quiet, wordy, failing, varied):
        text = kind()
        total = sum(map(len, chunks(text, size)))
        start = time.process_time()
        diagnose(read(chunks(text, size)), facts)
        seconds = time.process_time() - start
        print(f"{kind.__name__:8} {total / 1e6:7.0f} MB  {seconds:6.2f} s  {total / 1e6 / seconds:6.1f} MB/s")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
