"""Every layer type that is known, with its rule."""

from __future__ import annotations

from types import MappingProxyType
from typing import Optional

from caffeup.net.rules import common, data, losses, recurrent, ssd, vision
from caffeup.net.rules.base import Rule

_LIKE_THE_BOTTOM = (
    *("AbsVal", "BNLL", "Dropout", "ELU", "Exp", "Log", "LRN", "Power", "ReLU", "Sigmoid", "Softmax", "Split", "Swish", "TanH"),
    *("Threshold", "Clip", "Mish", "ReLU6", "HardSwish", "HardSigmoid", "ShuffleChannel"),
)

RULES: MappingProxyType[str, Rule] = MappingProxyType(
    {
        **dict.fromkeys(_LIKE_THE_BOTTOM, common.same),
        **dict.fromkeys(("ConvolutionDepthwise", "DepthwiseConvolution"), vision.depthwise),
        **dict.fromkeys(("EuclideanLoss", "SigmoidCrossEntropyLoss", "SmoothL1Loss"), losses.of_pairs),
        **dict.fromkeys(("HingeLoss", "InfogainLoss", "MultinomialLogisticLoss"), losses.loss),
        **dict.fromkeys(("Silence", "HDF5Output"), common.nothing),
        "Accuracy": losses.accuracy,
        "AnnotatedData": data.annotated,
        "ArgMax": common.argmax,
        "BatchNorm": common.batch_norm,
        "BatchReindex": common.batch_reindex,
        "Bias": common.bias,
        "Concat": common.concat,
        "ContrastiveLoss": losses.contrastive,
        "Convolution": vision.convolution,
        "Crop": common.crop,
        "Data": data.database,
        "Deconvolution": vision.deconvolution,
        "DetectionEvaluate": ssd.detection_evaluate,
        "DetectionOutput": ssd.detection_output,
        "DummyData": data.dummy,
        "Eltwise": common.eltwise,
        "Embed": common.embed,
        "Filter": common.filters,
        "Flatten": common.flatten,
        "HDF5Data": data.hdf5,
        "Im2col": vision.im2col,
        "ImageData": data.images,
        "InnerProduct": common.inner_product,
        "Input": data.inputs,
        "LSTM": recurrent.lstm,
        "LSTMUnit": recurrent.lstm_unit,
        "MVN": common.mvn,
        "MemoryData": data.memory,
        "MultiBoxLoss": ssd.multibox_loss,
        "Normalize": common.normalize,
        "PReLU": common.prelu,
        "Parameter": common.parameter,
        "Permute": common.permute,
        "Pooling": vision.pooling,
        "PriorBox": ssd.prior_box,
        "RNN": recurrent.rnn,
        "Reduction": common.reduction,
        "Reshape": common.reshape,
        "SPP": vision.spp,
        "Scale": common.scale,
        "Slice": common.slices,
        "SoftmaxWithLoss": losses.softmax_loss,
        "Tile": common.tile,
        "VideoData": data.video,
        "WindowData": data.windows,
    }
)


def rule_for(kind: str) -> Optional[Rule]:
    """The rule of a layer type."""
    return RULES.get(kind)
