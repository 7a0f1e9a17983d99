"""The values that pass between the stages: frozen, without I/O, and the same in text and in JSON."""
