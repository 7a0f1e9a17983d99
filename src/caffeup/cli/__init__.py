"""The commands: one file each, thin: parse, call, show, exit code."""
