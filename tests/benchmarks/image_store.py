"""Time images kept as decoded pixels, beside decoding them in every epoch.

Usage: python tests/benchmarks/image_store.py [--folder ...] [--images 300] [--sizes 64 224]
       python tests/benchmarks/image_store.py --walk 377110

Without a folder, 1024 x 1024 8-bit PNGs are drawn: smooth shapes with noise. With --walk, that many
empty files are made in as many study folders as MIMIC-CXR has for them, and found again.
"""

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import tensorflow as tf
from measure import fastest, options, seconds
from PIL import Image
from scipy.ndimage import zoom

from cxr_study.data.images.decoding import decode
from cxr_study.data.images.image_files import locate
from cxr_study.data.images.image_store import prepare
from cxr_study.training.input_pipeline import dataset

BATCH = 64


def draw(folder, number):
    """Write PNGs about as large as NIH's."""
    rng = np.random.default_rng(0)
    for i in range(number):
        smooth = zoom(rng.normal(128, 50, (12, 12)), 1024 / 12, order=3)
        pixels = (smooth + rng.normal(0, 2, smooth.shape)).clip(0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{i:05}.png")


def consume(data):
    for _ in data:
        pass


def plain_pipeline(files, size):
    """What tf.data users write: read, decode and resize in every epoch."""

    def read(file):
        pixels = tf.io.decode_png(tf.io.read_file(file), channels=3)
        return tf.image.resize(pixels, (size, size), antialias=True) / 255

    data = tf.data.Dataset.from_tensor_slices([str(file) for file in files])
    data = data.map(read, num_parallel_calls=tf.data.AUTOTUNE)
    return data.batch(BATCH).prefetch(tf.data.AUTOTUNE)


def decode_each(files, size):
    """Decode all images in threads and keep none."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        consume(pool.map(lambda file: decode(file.read_bytes(), size), files))


def compare(folder, size):
    files = sorted(folder.rglob("*.png"))
    names = [file.name for file in files]
    ask = partial(prepare, folder, names, [str(file) for file in files], size)
    threads = os.cpu_count()
    took = {}
    with tempfile.TemporaryDirectory() as cache:
        for number in (1, threads):
            os.environ["LOKY_MAX_CPU_COUNT"] = str(number)  # what joblib takes for all
            os.environ["SURGAGG_CACHE"] = str(Path(cache, str(number)))
            took[f"prepare, {number} threads"] = seconds(ask)[0]
        took["prepare again, nothing to do"], prepared = seconds(ask)
        rows = prepared.index["row"].to_numpy()
        rows = rows[rows >= 0]
        labels = np.zeros((len(rows), 14), np.float32)
        kept = dataset(prepared.pixels, labels, rows=rows, batch_size=BATCH, shuffle_seed=0)
        fast = took["epoch from the store"] = fastest(partial(consume, kept))
    plain = plain_pipeline(files, size)
    took["epoch, tf.data decodes"] = fastest(partial(consume, plain), 1)
    took["epoch, threads decode"] = fastest(partial(decode_each, files, size), 1)
    print(f"\n{len(files)} images to {size} x {size}   images/s   times the epoch from the store")
    for name, time in took.items():
        print(f"{name:30s} {len(files) / time:13,.0f} {time / fast:12.2f}")


def walk(number):
    """Print how long finding the files of a data set as large as MIMIC-CXR takes."""
    with tempfile.TemporaryDirectory() as folder:
        images = []
        for i in range(number):
            study = i * 227_835 // 377_110
            patient = study * 65_379 // 227_835
            images.append(f"p{10 + patient % 10}/p{patient}/s{study}/{i:08x}.jpg")
            Path(folder, images[-1]).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, images[-1]).touch()
        flat = [Path(image).name for image in images]
        for how, names in (("where they are said to lie", images), ("by walking", flat)):
            took, files = seconds(partial(locate, Path(folder), names))
            missing = files.count(None)
            print(f"{number} files found {how}: {took:.1f} s, {missing} missing")


def main():
    wanted = options(__doc__, folder="", images=300, sizes=[64, 224], walk=0)
    if wanted.walk:
        return walk(wanted.walk)
    with tempfile.TemporaryDirectory() as drawn:
        if not wanted.folder:
            draw(Path(drawn), wanted.images)
        for size in wanted.sizes:
            compare(Path(wanted.folder or drawn), size)


if __name__ == "__main__":
    main()
