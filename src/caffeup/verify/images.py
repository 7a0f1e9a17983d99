"""caffe.io on small images whose results are known; run by the Python that pycaffe was built for (2.7 to today)."""

from __future__ import annotations

import msgspec

from caffeup.model.base import Value
from caffeup.model.finding import Evidence
from caffeup.model.outcome import Check
from caffeup.verify.site import Site, answer, failed, why_not

_ALLOWED = 1e-4
"""Of the largest value: more is no rounding."""

# What is wanted is written out in numpy, apart from caffe.io. Values of a resized ramp are compared where each lies between
# two that are there: what is beyond the edge is the library's choice, and differs between versions of scikit-image.
# Argument: a name for a picture, which is written and removed again.
RUN = r"""import json, os, struct, sys, zlib
import numpy as np
import caffe
io = caffe.io
rng = np.random.RandomState(7)
x = rng.uniform(0, 1, (6, 8, 3)).astype(np.float32)
mean = np.array([104., 117., 123.])
error = {}

def compare(name, got, want):
    got, want = np.asarray(got, dtype=float), np.asarray(want, dtype=float)
    away = np.abs(got - want).max() / np.abs(want).max() if got.shape == want.shape else np.inf
    error[name] = '%.3e' % max(float(error.get(name, 0)), away if np.isfinite(away) else np.inf)

def transformer():
    made = io.Transformer({'data': (1, 3, 6, 8)})
    made.set_transpose('data', (2, 0, 1))
    made.set_channel_swap('data', (2, 1, 0))
    made.set_raw_scale('data', 255)
    made.set_mean('data', mean)
    return made

def ramp(height, width, rows, columns, last):
    return (rows.reshape(-1, 1, 1) / height + 2 * columns.reshape(1, -1, 1) / width + np.arange(last)).astype(np.float32)

def preprocess():
    want = np.empty((3, 6, 8))
    for channel in range(3):
        want[channel] = x[:, :, 2 - channel] * 255. - mean[channel]
    compare('Transformer', transformer().preprocess('data', x), want)
    if hasattr(io.Transformer, 'deprocess'):
        compare('Transformer', transformer().deprocess('data', want.astype(np.float32)), x)

def resize_first():
    rows, columns = (np.arange(9) + .5) * 6 / 9 - .5, (np.arange(12) + .5) * 8 / 12 - .5
    plain = io.Transformer({'data': (1, 3, 9, 12)})
    plain.set_transpose('data', (2, 0, 1))
    got = plain.preprocess('data', ramp(6., 8., np.arange(6), np.arange(8), 3))
    compare('Transformer', got[:, 1:-1, 1:-1], ramp(6., 8., rows, columns, 3)[1:-1, 1:-1].transpose(2, 0, 1))

def resize():
    rows, columns = (np.arange(9) + .5) * 6 / 9 - .5, (np.arange(12) + .5) * 8 / 12 - .5
    want = ramp(6., 8., rows, columns, 3)[1:-1, 1:-1]
    image = ramp(6., 8., np.arange(6), np.arange(8), 3)
    compare('resize_image', io.resize_image(image, (9, 12))[1:-1, 1:-1], want)
    want = ramp(6., 8., np.arange(11) / 2., np.arange(15) / 2., 2)[1:-1, 1:-1]
    image = ramp(6., 8., np.arange(6), np.arange(8), 2)
    compare('resize_image', io.resize_image(image, (11, 15))[1:-1, 1:-1], want)

def oversample():
    places = ((0, 0), (0, 4), (2, 0), (2, 4), (1, 2))
    crops = [x[top:top + 4, left:left + 4] for top, left in places]
    compare('oversample', io.oversample([x], (4, 4)), np.array(crops + [crop[:, ::-1] for crop in crops]))

def chunk(name, data):
    return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data) & 0xffffffff)

def load():
    gray = np.arange(0, 240, 12).reshape(4, 5).astype(np.uint8)
    pixels = zlib.compress(b''.join(b'\0' + row.tobytes() for row in gray))
    head = struct.pack('>IIBBBBB', 5, 4, 8, 0, 0, 0, 0)
    try:
        with open(sys.argv[1], 'wb') as picture:
            picture.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + chunk(b'IDAT', pixels) + chunk(b'IEND', b''))
        want = gray[:, :, np.newaxis] / 255.
        compare('load_image', io.load_image(sys.argv[1], color=False), want)
        compare('load_image', io.load_image(sys.argv[1]), np.tile(want, (1, 1, 3)))
    finally:
        os.remove(sys.argv[1])

said = {}
for needs, part in (('Transformer', preprocess), ('Transformer', resize_first), ('resize_image', resize),
                    ('oversample', oversample), ('load_image', load)):
    if hasattr(io, needs):
        try:
            part()
        except Exception as failure:
            said[needs] = '%s: %s' % (type(failure).__name__, failure)
print('caffeup:' + json.dumps({'error': error, 'said': said}))
"""


class _Images(Value):
    """Per function of caffe.io: how far its values are off (a text, since JSON has no infinity), or what it raised."""

    error: dict[str, str]
    said: dict[str, str]


def images(site: Site) -> Check:
    """Images prepared for a net: transposed, scaled, less the mean, resized, cropped, read from a file."""
    name = "caffe.io"
    picture = site.root / ".caffeup" / "tmp" / "gray.png"
    got = site.run(site.build.plan.python, "-c", RUN, str(picture), python=True)
    said = answer(got)
    why = "Classifier, Detector and most scripts prepare their images with it."
    if said is None:
        return failed(name, why_not(got), got.output, why=why)
    values = msgspec.json.decode(said, type=_Images)
    wrong = {one: f"wrong by {away}" for one, away in values.error.items() if not float(away) <= _ALLOWED}
    trouble = [f"{one}: {what}" for one, what in {**wrong, **values.said}.items()]
    if trouble:
        return failed(name, "; ".join(trouble), "\n".join((*trouble, got.output)), why=why)
    evidence = tuple(Evidence(where=f"caffe.io.{one}", text=f"differs by {away}") for one, away in values.error.items())
    return Check(name=name, ok=True, result=f"{', '.join(values.error)} are right", evidence=evidence)
