"""A small net whose values are known: run by the Python that pycaffe was built for (2.7 to today), compared with numpy."""

from __future__ import annotations

# Layers name the CAFFE engine: a cuDNN layer needs a GPU even in CPU mode.
NET = """\
name: "caffeup_small"
force_backward: true
input: "data"
input_shape { dim: 2 dim: 3 dim: 5 dim: 5 }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 4 kernel_size: 3 pad: 1 engine: CAFFE } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "relu" relu_param { engine: CAFFE } }
layer { name: "out" type: "InnerProduct" bottom: "relu" top: "out" inner_product_param { num_output: 3 } }
"""

IMPORT = """\
import json, sys
import caffe
import numpy
print('caffeup:' + json.dumps({
    'file': caffe.__file__, 'extension': sys.modules['caffe._caffe'].__file__,
    'numpy': numpy.__version__, 'python': sys.version.split()[0]}))
"""

RUN = """\
import json, sys
import numpy as np
import caffe
caffe.set_mode_cpu()
net = caffe.Net(sys.argv[1], caffe.TEST)
rng = np.random.RandomState(7)
x = rng.uniform(-1, 1, (2, 3, 5, 5))
w, b = rng.uniform(-1, 1, (4, 3, 3, 3)), rng.uniform(-1, 1, 4)
v, c = rng.uniform(-1, 1, (3, 100)), rng.uniform(-1, 1, 3)
d = rng.uniform(-1, 1, (2, 3))
for name, values in (('conv', (w, b)), ('out', (v, c))):
    for blob, value in zip(net.params[name], values):
        blob.data[...] = value.reshape(blob.data.shape)
        blob.diff[...] = 0
net.blobs['data'].data[...] = x
net.forward()
got = {'out': net.blobs['out'].data.copy()}
net.blobs['out'].diff[...] = d.reshape(net.blobs['out'].diff.shape)
net.backward()
got['data'] = net.blobs['data'].diff.copy()
got['conv'] = net.params['conv'][0].diff.copy()
got['weights'] = net.params['out'][0].diff.copy()
p = np.zeros((2, 3, 7, 7))
p[:, :, 1:6, 1:6] = x
y = np.zeros((2, 4, 5, 5))
for i in range(5):
    for j in range(5):
        y[:, :, i, j] = np.tensordot(p[:, :, i:i + 3, j:j + 3], w, ([1, 2, 3], [1, 2, 3])) + b
r = np.maximum(y, 0).reshape(2, 100)
want = {'out': r.dot(v.T) + c, 'weights': d.T.dot(r)}
g = (d.dot(v) * (r > 0)).reshape(2, 4, 5, 5)
dp, dw = np.zeros_like(p), np.zeros_like(w)
for i in range(5):
    for j in range(5):
        dp[:, :, i:i + 3, j:j + 3] += np.tensordot(g[:, :, i, j], w, ([1], [0]))
        dw += np.tensordot(g[:, :, i, j], p[:, :, i:i + 3, j:j + 3], ([0], [0]))
want['data'], want['conv'] = dp[:, :, 1:6, 1:6], dw
error = {}
for key in want:
    a, e = np.asarray(got[key], dtype=float).ravel(), want[key].ravel()
    away = np.abs(a - e).max() / np.abs(e).max() if a.shape == e.shape else np.inf
    error[key] = float(away) if np.isfinite(away) else float('inf')
print('caffeup:' + json.dumps({
    'forward': '%.3e' % error['out'],
    'backward': '%.3e' % max(error['data'], error['conv'], error['weights'])}))
"""
