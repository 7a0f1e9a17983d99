"""Two nets run side by side by a tree's own pycaffe, on the same input by chance."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec

from caffeup.app.session import Session, find_tree
from caffeup.app.treework import environment, last_plan, require_built
from caffeup.disk import as_path
from caffeup.errors import NotBuilt, VerifyFailed
from caffeup.model.net_model import Difference
from caffeup.model.plan import Plan
from caffeup.stream import Captured, run_capture

ALLOWED = 1e-4
_MARK = "caffeup:"
_SECONDS = 600.0
# Detections are left out: boxes of nearly equal scores change places for a difference in the last digit.
COMPARE = """\
import json, os, sys
os.environ['GLOG_minloglevel'] = '2'
import numpy as np
import caffe
caffe.set_mode_cpu()
names = sys.argv[1:5]
nets = [caffe.Net(names[i], names[i + 1], caffe.TEST) for i in (0, 2)]
rows = json.loads(sys.argv[5])
rng = np.random.RandomState(3)
for name in nets[0].inputs:
    values = rng.uniform(-1, 1, nets[0].blobs[name].data.shape)
    for net in nets:
        net.blobs[name].data[...] = values
for net in nets:
    net.forward()
worst, where, many = 0.0, '', 0
for name in nets[0].blobs:
    if name not in nets[1].blobs or name.startswith('detection'):
        continue
    a, b = [np.array(net.blobs[name].data, dtype=float) for net in nets]
    if name in rows:
        a = np.take(a, rows[name]['keep'], axis=rows[name]['axis'])
    if a.shape != b.shape or not a.size:
        continue
    many += 1
    away = np.abs(a - b).max() / max(np.abs(a).max(), 1e-30)
    if not away <= worst:
        worst, where = float(away) if np.isfinite(away) else 1e30, name
print('caffeup:' + json.dumps({'blobs': many, 'worst': worst, 'where': where, 'same': False}))
"""
SHAPES = """\
import json, os, sys
os.environ['GLOG_minloglevel'] = '2'
import caffe
caffe.set_mode_cpu()
net = caffe.Net(sys.argv[1], getattr(caffe, sys.argv[2]))
print('caffeup:' + json.dumps({name: list(blob.data.shape) for name, blob in net.blobs.items()}))
"""


def compare(session: Session, tree: str, before: tuple[str, str], after: tuple[str, str], rows: str = "{}") -> Difference:
    """How far two nets are apart, each a prototxt and a model. ``rows``: which channels of some blobs the second still has."""
    paths = tuple(str(as_path(name).absolute()) for name in (*before, *after))
    said = _answer(_run(session, tree, COMPARE, *paths, rows), tree)
    found = msgspec.json.decode(said, type=Difference)
    if not found.blobs:
        raise VerifyFailed("The two nets have no blob in common to compare.")
    return msgspec.structs.replace(found, same=found.worst <= ALLOWED)


def shapes_by_caffe(session: Session, tree: str, net: str, phase: str) -> dict[str, tuple[int, ...]]:
    """The shapes of all blobs as a built tree sets them up."""
    return msgspec.json.decode(
        _answer(_run(session, tree, SHAPES, str(as_path(net).absolute()), phase), tree), type=dict[str, tuple[int, ...]]
    )


def require_pycaffe(tree: str) -> Plan:
    """The plan by which a tree was built; raise ``NotBuilt`` where it cannot run nets in Python."""
    plan = last_plan(find_tree(tree))
    require_built(plan)
    if not plan.python:
        raise NotBuilt(f"{tree} was built without pycaffe, which runs the nets.", commands=("caffeup up",))
    return plan


def _run(session: Session, tree: str, script: str, *arguments: str) -> Captured:
    plan = require_pycaffe(tree)
    path = dict(environment(plan))["PYTHONPATH"]
    with tempfile.TemporaryDirectory() as folder:
        env = {
            **{name: value for name, value in session.host.env.items() if not name.startswith(("PYTHON", "GLOG_", "LD_"))},
            "PYTHONPATH": os.pathsep.join(path),
            "PYTHONDONTWRITEBYTECODE": "1",
            "GLOG_log_dir": folder,
        }
        return run_capture((plan.python, "-c", script, *arguments), cwd=str(Path.cwd()), env=env, timeout=_SECONDS)


def _answer(got: Captured, tree: str) -> str:
    lines = [line.removeprefix(_MARK) for line in got.output.splitlines() if line.startswith(_MARK)]
    if got.status == 0 and lines:
        return lines[-1]
    told = [line.strip() for line in got.output.splitlines() if line.strip()]
    first = next((line for line in told if "Check failed" in line or "Error parsing" in line), told[-1] if told else "")
    raise VerifyFailed(f"The pycaffe of {tree} does not run this net.", details=first[:400])
