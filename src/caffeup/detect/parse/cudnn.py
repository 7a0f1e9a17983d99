"""cuDNN's version out of its headers, 1 to 9."""

from __future__ import annotations

from typing import Optional

from packaging.version import Version

from caffeup.detect.parse.versions import define


def parse_cudnn_version(text: str) -> Optional[Version]:
    """From cudnn_version.h (8 and newer) or cudnn.h; None where it only includes the other, or says nothing."""
    major = define(text, "CUDNN_MAJOR")
    if major is not None:
        minor, patch = define(text, "CUDNN_MINOR"), define(text, "CUDNN_PATCHLEVEL")
        return Version(f"{major}.{minor or 0}.{patch or 0}")
    number = define(text, "CUDNN_VERSION")
    return None if number is None else version_of_number(number)


def version_of_number(number: int) -> Optional[Version]:
    """``CUDNN_VERSION``: 8907 is 8.9.7, and from 9 on the major counts ten thousands: 91400 is 9.14.0."""
    if not 1000 <= number < 10_000_000:
        return None
    unit = 1000 if number < 10_000 else 10_000
    major, rest = divmod(number, unit)
    return Version(f"{major}.{rest // 100}.{rest % 100}")
