"""A net as a picture: boxes of layers that belong together, laid out from top to bottom, as SVG."""
