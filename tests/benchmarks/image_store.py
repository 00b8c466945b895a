"""Time images kept as decoded pixels, beside decoding them in every epoch.

Usage: python tests/benchmarks/image_store.py [IMAGES_FOLDER] [--images 300] [--sizes 64 224]
       python tests/benchmarks/image_store.py --walk 377110

Without a folder, 1024 x 1024 8-bit PNGs are drawn: smooth shapes with noise. With --walk, that many
empty files are made in as many study folders as MIMIC-CXR has for them, and found again.
"""

import argparse
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import tensorflow as tf
from measure import fastest, seconds
from PIL import Image
from scipy.ndimage import zoom

from cxr_study.data.images.decoding import decode_bytes
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
    """Read an epoch."""
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


def decode(file, size):
    return decode_bytes(Path(file).read_bytes(), size)


def decode_each(files, size):
    """Decode all images in threads and keep none."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(partial(decode, size=size), files):
            pass


def compare(folder, size):
    """Print images per second of each way."""
    files = sorted(folder.rglob("*.png"))
    names = [file.name for file in files]
    ask = partial(prepare, folder, names, [str(file) for file in files], size)

    def prepare_anew(threads):
        os.environ["LOKY_MAX_CPU_COUNT"] = str(threads)  # what joblib takes for all
        with tempfile.TemporaryDirectory() as cache:
            return seconds(partial(ask, cache_dir=Path(cache)))[0]

    with tempfile.TemporaryDirectory() as cache:
        one, every = (prepare_anew(threads) for threads in (1, os.cpu_count()))
        ask(cache_dir=Path(cache))
        again, prepared = seconds(partial(ask, cache_dir=Path(cache)))
        rows = prepared.index["row"].to_numpy()
        rows = rows[rows >= 0]
        labels = np.zeros((len(rows), 14), np.float32)
        kept = dataset(prepared.pixels, labels, rows=rows, batch_size=BATCH, shuffle_seed=0)
        figures = {
            "prepare, 1 thread": one,
            f"prepare, {os.cpu_count()} threads": every,
            "prepare again, nothing to do": again,
            "epoch from the store": fastest(partial(consume, kept)),
            "epoch, tf.data decodes": fastest(partial(consume, plain_pipeline(files, size)), 1),
            "epoch, threads decode": fastest(partial(decode_each, files, size), 1),
        }
    fast = figures["epoch from the store"]
    print(f"\n{len(files)} images to {size} x {size}   images/s   times the epoch from the store")
    for name, took in figures.items():
        print(f"{name:30s} {len(files) / took:13,.0f} {took / fast:12.2f}")


def walk(number):
    """Print how long finding the files of a data set as large as MIMIC-CXR takes."""
    with tempfile.TemporaryDirectory() as folder:
        images = []
        for i in range(number):
            study = i * 227_835 // 377_110
            patient = study * 65_379 // 227_835
            images.append(f"p{10 + patient % 10}/p{patient}/s{study}/{i:08x}.jpg")
        for image in images:
            Path(folder, image).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, image).touch()
        flat = [Path(image).name for image in images]
        for what, names in (("where they are said to lie", images), ("by walking", flat)):
            took, files = seconds(partial(locate, Path(folder), names))
            missing = files.count(None)
            print(f"{number} files found {what}: {took:.1f} s, {missing} missing")


def main():
    """Print tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", help="folder of PNGs")
    parser.add_argument("--images", type=int, default=300, help="how many are drawn")
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 224])
    parser.add_argument("--walk", type=int, help="number of empty files to find, and nothing else")
    options = parser.parse_args()
    if options.walk:
        walk(options.walk)
        return
    with tempfile.TemporaryDirectory() as drawn:
        folder = options.folder or Path(drawn)
        if options.folder is None:
            draw(folder, options.images)
        for size in options.sizes:
            compare(folder, size)


if __name__ == "__main__":
    main()
