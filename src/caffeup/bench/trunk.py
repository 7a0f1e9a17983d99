"""The net that is measured or shown where none is named: MobileNet-SSD, as far as a tree has its layers."""

from __future__ import annotations

from collections.abc import Container

from caffeup.net.make.detector import Order
from caffeup.net.make.mobilenet import mobilenet_ssd
from caffeup.net.make.spelling import Fields, Value, spelled

CLASSES, SIZE = 21, 300
TRUNK = "MobileNet-SSD, its convolutions"
_EVERYWHERE = ("Convolution", "ReLU")


def default_net(types: Container[str]) -> str:
    """Its prototxt, without normalisations; where a tree lacks the layers behind the heads, it ends with the heads."""
    fields = mobilenet_ssd(Order(classes=CLASSES, size=SIZE, merged=True))
    if all(_type(value) in types for name, value in fields if name == "layer"):
        return spelled(fields)
    kept: Fields = [("name", TRUNK)]
    kept += [(name, value) for name, value in fields if name != "name" and (name != "layer" or _type(value) in _EVERYWHERE)]
    return spelled(kept)


def _type(layer: Value) -> str:
    fields = dict(layer) if isinstance(layer, list) else {}
    return str(fields.get("type", ""))
