"""A built tree for tests: its ``caffe time`` makes times up from the prototxt, and its Python sees one box in each image."""

from __future__ import annotations

import sys
from pathlib import Path

from caffeup.model.base import to_json
from caffeup.model.plan import Decision, Plan, Request

# A layer takes the milliseconds of its way; what ways there are and what fails comes from the test.
PROGRAM = """\
#!{python}
import os, re, sys, time
args = dict(word.lstrip('-').partition('=')[::2] for word in sys.argv[2:])
text = open(args['model']).read()
text = re.sub(r'#[^\\n]*', '', text)
open({log!r}, 'a').write(repr((sorted(args), os.environ.get('CAFFE_AUTO_DEPTHWISE'), os.environ.get('CUDA_VISIBLE_DEVICES'))) + '\\n')
def say(line, place='caffe.cpp:396', level='I'):
    sys.stderr.write(level + '20260101 00:00:00.000000  1234 ' + place + '] ' + line + '\\n')
batch = int(re.search(r'dim: *(\\d+)', text).group(1))
rows = []
for piece in re.split(r'(?m)^(?=layer)', text):
    name = re.search(r'name: *"([^"]*)"', piece)
    kind = re.search(r'type: *"(\\w+)"', piece)
    if not piece.startswith('layer') or not name or not kind:
        continue
    engine = re.search(r'engine: *(\\w+)', piece)
    engine = engine.group(1) if engine else ''
    group = int((re.search(r'group: *(\\d+)', piece) or [0, 1])[1])
    if kind.group(1) == 'Convolution' and engine == 'CUDNN' and group > 1 and {dies!r}:
        {death}
    cost = 0.1
    if kind.group(1) == 'DepthwiseConvolution':
        cost = 0.5
    elif kind.group(1) == 'Convolution':
        cost = {{'CAFFE': {caffe}, 'CUDNN': {cudnn}}}.get(engine, {default}) * group
    rows.append((name.group(1), cost * batch))
time.sleep({sleep})
for name, cost in rows:
    say('%10s\\tforward: %g ms.' % (name, cost))
    say('%10s\\tbackward: %g ms.' % (name, 2 * cost))
total = sum(cost for _, cost in rows)
say('Average Forward pass: %g ms.' % total)
say('Average Backward pass: %g ms.' % (2 * total))
"""
PYTHON = """\
#!{python}
import json, sys
job = json.loads(sys.argv[3])
for name in job.get('nets', []):
    text = open(name).read()
    print('caffeup:%d' % ((9 if 'engine: CUDNN' in text else 2) << 20))
for one in job.get('images', []):
    open(one['to'], 'wb').write(b'PNG')
    box = {{'label': (job['labels'] or ['?', 'class 1'])[1], 'score': 0.5, 'left': 1, 'top': 2, 'right': 30, 'bottom': 40}}
    print('caffeup:' + json.dumps({{'width': 64, 'height': 48, 'milliseconds': [9.0, 2.0, 3.0, 4.0], 'boxes': [box]}}))
"""
HANDLES = (
    "sys.exit(say('Check failed: status == CUDNN_STATUS_SUCCESS (4 vs. 0)  CUDNN_STATUS_INTERNAL_ERROR', 'cudnn_conv_layer.cpp:53', "
    "'F') or 1)"
)
CRASH = "say('Creating Layer ' + name.group(1), 'net.cpp:84'), os.kill(os.getpid(), 11)"
NET = """\
name: "small"
layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 8 dim: 16 dim: 16 } } }
layer {
  name: "dw"
  type: "Convolution"
  bottom: "data" top: "dw"
  convolution_param { num_output: 8 kernel_size: 3 group: 8 }
}
layer {
  name: "pw"
  type: "Convolution"
  bottom: "dw" top: "pw"
  convolution_param {
    num_output: 4
    kernel_size: 1
    engine: CUDNN
  }
}
layer { name: "relu" type: "ReLU" bottom: "pw" top: "pw" }
"""


def built_tree(
    root: Path,
    *,
    gpu: bool = False,
    cudnn: bool = False,
    depthwise: bool = True,
    dies: bool = False,
    death: str = HANDLES,
    caffe: float = 2.0,
    cudnn_ms: float = 1.0,
    default: float = 1.5,
    sleep: float = 0.0,
    layers: tuple[str, ...] = (),
    planned: bool = True,
) -> Path:
    """A tree with a plan (unless not ``planned``), programs, and a pycaffe."""
    log = root / "log"
    types = [*layers, *(["DepthwiseConvolution"] if depthwise else [])]
    files = {
        "src/caffe/proto/caffe.proto": 'syntax = "proto2";\npackage caffe;\nmessage NetParameter { optional string name = 1; }\n',
        "src/caffe/layers/all.cpp": "".join(f"REGISTER_LAYER_CLASS({one});\n" for one in types),
        "tools/caffe.cpp": 'DEFINE_string(phase, "", "");\n',
        "python/caffe/_caffe.so": "",
        "build/tools/caffe": PROGRAM.format(
            python=sys.executable,
            log=str(log),
            dies=dies,
            death=death,
            caffe=caffe,
            cudnn=cudnn_ms,
            default=default,
            sleep=sleep,
        ),
        "build/python": PYTHON.format(python=sys.executable),
    }
    if planned:
        plan = Plan(
            tree=str(root),
            fork="ssd",
            request=Request(),
            gpu=gpu,
            cudnn=cudnn,
            decisions=(Decision(key="blas", value="open", because="<b>it</b> is here"),),
            python=str(root / "build" / "python"),
        )
        files[".caffeup/plan.json"] = to_json(plan)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    return root


def calls(root: Path) -> list[str]:
    """What its programs were called with."""
    log = root / "log"
    return log.read_text().splitlines() if log.exists() else []
