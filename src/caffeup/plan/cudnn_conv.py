"""Which layer convolutions through cuDNN are computed by: caffeup's or the tree's own."""

from __future__ import annotations

from typing import Optional

from packaging.version import Version

from caffeup.plan.case import Case
from caffeup.plan.part import Part, decision

_LAYER = "cudnn-shared-conv"
_FIRST_WITH_GROUPS = 7


def choose_cudnn_conv(case: Case, cudnn: Optional[Version]) -> tuple[tuple[str, ...], Part]:
    """The wishes (names of fixes' ``wish``) and the decision; nothing where cuDNN is off."""
    if cudnn is None:
        return (), Part()
    features = case.tree.features
    if not case.request.cudnn_conv:
        return _decided("the tree's own", "asked for with --tree-cudnn-conv")
    if cudnn.major < _FIRST_WITH_GROUPS:
        return _decided("the tree's own", f"cuDNN {cudnn} knows no groups, caffeup's layer is written for 7 and newer")
    if "layers:one-type" not in features or "layers:cudnn-convolution" not in features:
        return _decided("the tree's own", "this tree makes its cuDNN layers in another way than new CuDNNConvolutionLayer<Dtype>")
    return _decided("caffeup's", "one handle and one workspace for all layers, not three of each per group", _LAYER)


def _decided(value: str, because: str, *wishes: str) -> tuple[tuple[str, ...], Part]:
    return wishes, Part(decisions=(decision("cudnn-convolution", value, because),))
