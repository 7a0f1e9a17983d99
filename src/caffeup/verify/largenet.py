"""A net whose convolutions need workspaces, on the GPU against the CPU; run by the Python that pycaffe was built for."""

from __future__ import annotations

# ENGINE is CAFFE or CUDNN, BATCH the number of images.
NET = """\
name: "caffeup_large"
force_backward: true
input: "data"
input_shape { dim: BATCH dim: 3 dim: 64 dim: 64 }
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 32 kernel_size: 5 pad: 2 engine: ENGINE } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" relu_param { engine: ENGINE } }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 engine: ENGINE } }
layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
  convolution_param { num_output: 64 kernel_size: 3 pad: 1 engine: ENGINE } }
layer { name: "relu2" type: "ReLU" bottom: "conv2" top: "conv2" relu_param { engine: ENGINE } }
layer { name: "conv3" type: "Convolution" bottom: "conv2" top: "conv3"
  convolution_param { num_output: 64 kernel_size: 3 pad: 1 group: 2 engine: ENGINE } }
layer { name: "conv4" type: "Convolution" bottom: "conv3" top: "conv4"
  convolution_param { num_output: 32 kernel_size: 1 engine: ENGINE } }
layer { name: "out" type: "InnerProduct" bottom: "conv4" top: "out" inner_product_param { num_output: 10 } }
"""
BATCHES = (1, 32)


def net(engine: str, batch: int) -> str:
    """The text of the net."""
    return NET.replace("ENGINE", engine).replace("BATCH", str(batch))


# Arguments: the net for the CPU, the net for the GPU, and the batch sizes. Values differ in the norm and not in the
# largest: where a ReLU's input is zero but for rounding, single gradients are there on one side only.
# The memory is what the driver counts: it needs the context that Caffe has made.
RUN = """\
import ctypes, gc, json, sys
import numpy as np
import caffe
driver = ctypes.CDLL('libcuda.so.1')

def taken():
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    if driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)):
        return 0
    return total.value - free.value

def run(net, batch):
    rng = np.random.RandomState(7)
    net.blobs['data'].reshape(batch, 3, 64, 64)
    net.reshape()
    for name in ('conv1', 'conv2', 'conv3', 'conv4', 'out'):
        weights, bias = net.params[name]
        fan = float(np.prod(weights.data.shape[1:]))
        weights.data[...] = rng.normal(0, (2 / fan) ** 0.5, weights.data.shape)
        bias.data[...] = rng.normal(0, 0.1, bias.data.shape)
        weights.diff[...] = 0
        bias.diff[...] = 0
    net.blobs['data'].data[...] = rng.normal(0, 1, net.blobs['data'].data.shape)
    net.forward()
    net.blobs['out'].diff[...] = rng.normal(0, 1, net.blobs['out'].diff.shape)
    net.backward()
    back = [net.blobs['data'].diff.copy()]
    for name in ('conv1', 'conv2', 'conv3', 'conv4', 'out'):
        back += [blob.diff.copy() for blob in net.params[name]]
    return net.blobs['out'].data.copy(), back

def away(got, want):
    got, want = got.astype(float), want.astype(float)
    value = np.linalg.norm(got - want) / np.linalg.norm(want)
    return float(value) if np.isfinite(value) else float('inf')

caffe.set_mode_cpu()
batches = [int(one) for one in sys.argv[3].split(',')]
wanted = []
cpu = caffe.Net(sys.argv[1], caffe.TEST)
for batch in batches:
    wanted.append(run(cpu, batch))
caffe.set_device(0)
caffe.set_mode_gpu()
before = taken()
gpu = caffe.Net(sys.argv[2], caffe.TEST)
rows = []
for batch, (out, back) in zip(batches, wanted):
    got, diffs = run(gpu, batch)
    rows.append({'batch': batch, 'memory': taken() - before, 'forward': '%.3e' % away(got, out),
                 'backward': '%.3e' % max(away(one, other) for one, other in zip(diffs, back))})
del gpu
gc.collect()
print('caffeup:' + json.dumps({'before': before, 'rows': rows, 'left': taken() - before}))
"""
