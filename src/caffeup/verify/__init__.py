"""Shows that what was built works here: libraries resolve, the program runs, Python imports it, and it computes right."""

from __future__ import annotations

from caffeup.verify.checks import number_of_checks, verify

__all__ = ["number_of_checks", "verify"]
