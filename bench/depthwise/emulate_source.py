"""Turns the kernels' source into C++ for emulate.hpp: `kernel<<<grid, block, bytes, stream>>>(arguments);` becomes a call."""

from __future__ import annotations

import re
import sys
from pathlib import Path

LAUNCH = re.compile(r"(\w+<[^;{}]*?>)\s*<<<([^;<>]*?),\s*([^,;<>]*?),\s*([^,;<>]*?), stream>>>\(([^;]*?)\);", re.DOTALL)


def emulated(source: str) -> str:
    """The source with every launch replaced; raises ValueError where one was not understood."""
    text = LAUNCH.sub(r"::emulate::launch(\2, \3, \4, [&] { \1(\5); });", source)
    if "<<<" in text:
        raise ValueError("a launch that this script does not understand: " + text[text.index("<<<") - 80 :][:200])
    text = text.replace(
        "extern __shared__ int4 dynamic_shared_memory[];", "int4* const dynamic_shared_memory = ::emulate::shared;"
    )
    return text.replace("#include <cuda_runtime.h>\n", "")


if __name__ == "__main__":
    sys.stdout.write("#define DEPTHWISE_CONV_STANDALONE\n" + emulated(Path(sys.argv[1]).read_text()))
