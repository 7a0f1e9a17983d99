"""The depthwise layer: caffeup's, the tree's own, or none, and whether a plain Convolution uses it."""

from __future__ import annotations

from caffeup.model.base import Value
from caffeup.model.finding import Finding, Severity
from caffeup.plan.case import Case
from caffeup.plan.part import Part, decision, note, remedy

_LAYER, _AUTO, _REPLACE = "depthwise-layer", "depthwise-auto", "depthwise-replace"
_OFF = "CAFFE_AUTO_DEPTHWISE=0 in the environment turns it off"


class Depthwise(Value, kw_only=True):
    """The decision, and what it calls for by the names of fixes' ``wish``."""

    wishes: tuple[str, ...] = ()
    part: Part = Part()


def choose_depthwise(case: Case, *, gpu: bool) -> Depthwise:
    """Always add it where it fits; one that the tree has by itself stays until --replace-depthwise."""
    tree = case.tree
    if not tree.seen:
        return _decided("known when the tree is here", "it depends on how the tree makes its layers")
    if "layers:one-type" not in tree.features:
        return _decided("none", "this tree's layers are made in another way than the layer is written for (Layer<Dtype>)")
    own = "depthwise:own" in tree.features
    if own and not case.request.replace_depthwise:
        because = "this tree registers DepthwiseConvolution or ConvolutionDepthwise itself, and a name must not stand twice"
        return _decided("the tree's own", because, notes=(_finding(case, gpu=gpu),))
    replaced = own or _REPLACE in tree.applied
    wishes = (_LAYER, _REPLACE) if replaced else (_LAYER,)
    value = "caffeup's, in the place of the tree's own" if replaced else "caffeup's"
    if not case.request.auto_depthwise:
        return _decided(f"{value}, by its name alone", "asked for with --no-auto-depthwise", *wishes)
    if "layers:convolution-creator" not in tree.features:
        because = "this tree chooses its convolution layer in another way than GetConvolutionLayer<Dtype>"
        return _decided(f"{value}, by its name alone", because, *wishes)
    because = f"a Convolution with a group for each channel, computed directly and not in a loop; {_OFF}"
    return _decided(value, because, *wishes, _AUTO)


def _decided(value: str, because: str, *wishes: str, notes: tuple[Finding, ...] = ()) -> Depthwise:
    return Depthwise(wishes=wishes, part=Part(decisions=(decision("depthwise", value, because),), notes=notes))


def _finding(case: Case, *, gpu: bool) -> Finding:
    known = "depthwise:yonghenglh6" in case.tree.features
    why = "It was not written or tested by caffeup, and a plain Convolution does not use it."
    if known:
        why = (
            "It ignores dilation and several filters a channel without a word, is wrong on the GPU for maps smaller than the "
            "kernel (the heads of SSDLite have them), and computes each weight gradient in one thread. A plain Convolution "
            "does not use it."
        )
    return note(
        "depthwise-own-layer",
        "this tree has a depthwise layer of its own, which stays",
        why,
        remedies=(remedy("put caffeup's in its place", case.again("--replace-depthwise"), by_caffeup=True),),
        affects="depthwise",
        severity=Severity.WARNING if known and gpu else Severity.NOTE,
    )
