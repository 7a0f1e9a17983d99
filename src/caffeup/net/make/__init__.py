"""Nets made anew: detectors of the SSD kind, for any number of classes and any size."""
