"""Probes: one a file; they ask the Host and return values."""
