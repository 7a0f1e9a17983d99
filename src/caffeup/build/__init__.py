"""make, tests and progress."""
