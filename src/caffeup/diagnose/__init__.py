"""From a log to its cause."""
