"""The lock file: what a build was made of, and what came of it."""
