"""Decisions: one a file; pure functions of machine, tree, request and facts."""
