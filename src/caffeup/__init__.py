"""caffeup: from a bare Linux machine to a Caffe that is built for exactly its GPU, and works."""

__version__ = "0.1.0"
