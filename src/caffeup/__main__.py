"""``python -m caffeup``."""

from caffeup.cli.main import run

run()
