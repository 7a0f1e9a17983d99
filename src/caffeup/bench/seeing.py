"""Objects found in images, by a net of the SSD kind: run by the Python that pycaffe was built for (2.7 to today).

It reads images with PIL, OpenCV or scikit-image, whichever that Python has; the PNGs are written by itself.
"""

from __future__ import annotations

VOC = (
    "background",
    "aeroplane",
    "bicycle",
    "bird",
    "boat",
    "bottle",
    "bus",
    "car",
    "cat",
    "chair",
    "cow",
    "diningtable",
    "dog",
    "horse",
    "motorbike",
    "person",
    "pottedplant",
    "sheep",
    "sofa",
    "train",
    "tvmonitor",
)
"""The classes of PASCAL VOC, in the order in which these nets have them."""

# Argument: a job as JSON. Where there is no model, weights that the net's fillers left at zero get values by chance.
RUN = r"""
import json, os, struct, sys, time, zlib
import numpy as np
import caffe

COLOURS = [(230, 60, 60), (40, 140, 230), (40, 170, 90), (240, 150, 20), (150, 80, 210), (0, 170, 170), (220, 70, 150)]

def picture():
    high, wide = 360, 480
    y, x = np.mgrid[0:high, 0:wide]
    image = np.stack([60 + 100 * y // high, 110 + 90 * y // high, 200 - 60 * y // high], axis=2)
    image[y > 250] = (90, 120, 70)
    image[(abs(x - 150) < 70) & (abs(y - 230) < 40)] = (200, 40, 40)
    for middle in (110, 190):
        image[(x - middle) ** 2 + (y - 272) ** 2 < 18 ** 2] = (20, 20, 20)
    image[(x - 350) ** 2 + (y - 150) ** 2 < 30 ** 2] = (230, 190, 160)
    image[(abs(x - 350) < 35) & (abs(y - 230) < 55)] = (40, 60, 140)
    return image.astype(np.uint8)

def load(path):
    try:
        from PIL import Image
        return np.array(Image.open(path).convert('RGB'))
    except ImportError:
        pass
    try:
        import cv2
        image = cv2.imread(path)
        if image is None:
            raise IOError('not an image that OpenCV reads')
        return image[:, :, ::-1].copy()
    except ImportError:
        pass
    return (caffe.io.load_image(path) * 255 + 0.5).astype(np.uint8)

def resized(image, high, wide):
    y = np.clip((np.arange(high) + 0.5) * image.shape[0] / high - 0.5, 0, image.shape[0] - 1)
    x = np.clip((np.arange(wide) + 0.5) * image.shape[1] / wide - 0.5, 0, image.shape[1] - 1)
    top, left = np.floor(y).astype(int), np.floor(x).astype(int)
    low, right = np.minimum(top + 1, image.shape[0] - 1), np.minimum(left + 1, image.shape[1] - 1)
    down, across = (y - top)[:, None, None], (x - left)[None, :, None]
    image = image.astype(np.float32)
    above = image[top][:, left] * (1 - across) + image[top][:, right] * across
    below = image[low][:, left] * (1 - across) + image[low][:, right] * across
    return above * (1 - down) + below * down

def frame(image, box, colour):
    high, wide = image.shape[:2]
    thick = max(2, min(high, wide) // 150)
    left, right = [int(min(max(box[i], 0), wide - 1)) for i in ('left', 'right')]
    top, bottom = [int(min(max(box[i], 0), high - 1)) for i in ('top', 'bottom')]
    image[top:top + thick, left:right + 1] = colour
    image[max(bottom - thick + 1, 0):bottom + 1, left:right + 1] = colour
    image[top:bottom + 1, left:left + thick] = colour
    image[top:bottom + 1, max(right - thick + 1, 0):right + 1] = colour
    return left, top

def written_on(image, texts):
    try:
        from PIL import Image, ImageDraw
        canvas = Image.fromarray(image)
        draw = ImageDraw.Draw(canvas)
        for text, (left, top), colour in texts:
            wide = 6 * len(text) + 6
            y = top - 13 if top >= 13 else top
            draw.rectangle([left, y, left + wide, y + 13], fill=colour)
            draw.text((left + 3, y + 1), text, fill=(255, 255, 255))
        return np.array(canvas)
    except ImportError:
        pass
    try:
        import cv2
        image = np.ascontiguousarray(image)
        for text, (left, top), colour in texts:
            cv2.putText(image, text, (left + 3, max(top - 4, 12)), cv2.FONT_HERSHEY_SIMPLEX, 0.45, colour, 1)
    except ImportError:
        pass
    return image

def write_png(path, image):
    high, wide = image.shape[:2]
    rows = np.zeros((high, 1 + 3 * wide), np.uint8)
    rows[:, 1:] = image.reshape(high, -1)
    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data) & 0xffffffff)
    with open(path, 'wb') as out:
        out.write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', wide, high, 8, 2, 0, 0, 0)))
        out.write(chunk(b'IDAT', zlib.compress(rows.tobytes(), 6)) + chunk(b'IEND', b''))

def by_chance(net):
    rng = np.random.RandomState(11)
    for layer in net.layers:
        if layer.type == 'BatchNorm':
            for blob, value in zip(layer.blobs, (0, 1, 1)):
                blob.data[...] = value
        elif len(layer.blobs) and not np.any(layer.blobs[0].data):
            shape = layer.blobs[0].data.shape
            if len(shape) == 1:
                layer.blobs[0].data[...] = 1
            else:
                layer.blobs[0].data[...] = rng.normal(0, (2.0 / np.prod(shape[1:])) ** 0.5, shape)

def boxes_of(net, job, high, wide):
    found = [net.blobs[name].data for name in net.outputs if net.blobs[name].data.shape[-1] == 7]
    if not found:
        raise ValueError('the net gives no detections: no output has rows of seven')
    boxes = []
    for _, label, score, left, top, right, bottom in found[0].reshape(-1, 7).tolist():
        if label < 0 or not score >= job['threshold']:
            continue
        name = job['labels'][int(label)] if int(label) < len(job['labels']) else 'class %d' % int(label)
        boxes.append({'label': name, 'score': score, 'left': left * wide, 'top': top * high, 'right': right * wide,
                      'bottom': bottom * high})
    boxes = [box for box in boxes if np.all(np.isfinite([value for key, value in box.items() if key != 'label']))]
    return sorted(boxes, key=lambda box: -box['score'])[:job['most']]

def see(net, job, one):
    image = load(one['path']) if one['path'] else picture()
    high, wide = image.shape[:2]
    name = net.inputs[0]
    shape = net.blobs[name].data.shape
    small = resized(image, shape[2], shape[3])[:, :, ::-1]
    values = (small - np.array(job['mean'], np.float32)) * job['scale']
    times = []
    for _ in range(job['repeat']):
        net.blobs[name].data[...] = values.transpose(2, 0, 1)[None]
        began = time.time()
        net.forward()
        times.append(1000 * (time.time() - began))
    boxes = boxes_of(net, job, high, wide)
    texts = []
    for box in boxes[::-1]:
        colour = COLOURS[sum(map(ord, box['label'])) % len(COLOURS)]
        texts.append(('%s %d%%' % (box['label'], round(100 * box['score'])), frame(image, box, colour), colour))
    if one['to']:
        write_png(one['to'], written_on(image, texts))
    return {'width': wide, 'height': high, 'milliseconds': times, 'boxes': boxes}

job = json.loads(sys.argv[1])
if job['gpu']:
    caffe.set_device(0)
    caffe.set_mode_gpu()
else:
    caffe.set_mode_cpu()
if job['model']:
    net = caffe.Net(job['net'], job['model'], caffe.TEST)
else:
    net = caffe.Net(job['net'], caffe.TEST)
    by_chance(net)
if len(net.inputs) != 1 or len(net.blobs[net.inputs[0]].data.shape) != 4:
    sys.exit('the net has no single input of images: a deploy net has one')
for number, one in enumerate(job['images']):
    try:
        said = see(net, job, one)
    except (IOError, OSError, ValueError, MemoryError) as error:
        said = {'failed': str(error) or type(error).__name__}
    print('caffeup:' + json.dumps(said))
    sys.stdout.flush()
"""
