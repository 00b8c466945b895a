"""Compare a model's exported files with its own predictions: differences, sizes, images a second.

Usage: python tests/benchmarks/exported_formats.py MODEL IMAGES [--most 1000]

MODEL is a run's folder or a checkpoint, IMAGES a folder. Every format runs alone in a process on
one core, from decoded pixels in batches of one size; the second time is measured. "predict" is the
project's own way from the same pixels: Pillow resizes, the network predicts.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image

from cxr_study import load_model
from cxr_study.data.images.decoding import square
from cxr_study.models.export import export_model
from cxr_study.models.prediction.found_images import find

FILES = {"keras": "m.keras", "savedmodel": "m", "onnx": "m.onnx"}
BATCH = 20
PROGRAM = Path(__file__).parents[1] / "support/exported_runtime.py"


def grey(path):
    with Image.open(BytesIO(Path(path).read_bytes())) as image:
        return np.asarray(image.convert("L"))


def batches(images, most):
    """Images of one size each, by name."""
    by_size = defaultdict(list)
    for one in find([images])[:most]:
        pixels = grey(one.path)
        by_size[pixels.shape].append(pixels)
    return {
        f"{height}x{width}-{start}": np.stack(group[start : start + BATCH])
        for (height, width), group in by_size.items()
        for start in range(0, len(group), BATCH)
    }


def own(model, arrays):
    """Predict as the project does, in this process; the second time's seconds."""
    size = model.network.image_size
    for _ in range(2):
        began = time.perf_counter()
        found = {}
        for name, values in arrays.items():
            small = [np.asarray(square(Image.fromarray(pixels), size)) for pixels in values]
            found[name] = model.outputs(np.stack(small)).probabilities
        seconds = time.perf_counter() - began
    return found, seconds


def megabytes(path):
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("images", type=Path)
    parser.add_argument("--most", type=int, default=1000, help="images, the first ones by name")
    given = parser.parse_args()
    arrays = batches(given.images, given.most)
    number = sum(map(len, arrays.values()))
    sizes = {values.shape[1:] for values in arrays.values()}
    model = load_model(given.model)
    expected, seconds = own(model, arrays)
    print(f"{number} images of {len(sizes)} sizes, network input {model.network.image_size}")
    print(f"{'':12} {'max difference':>14} {'MB':>6} {'images/s':>9} {'ratio':>6}")
    print(f"{'predict':12} {'':>14} {megabytes(model.file):6.2f} {number / seconds:9.1f} {1:6.2f}")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        np.savez(home / "images.npz", **arrays)
        for to, name in FILES.items():
            export_model.export(model, to, home / name)
            command = [PROGRAM, to, home / name, home / "images.npz", home / "found.npz"]
            alone = ["taskset", "-c", "0", sys.executable, *command]
            subprocess.run(alone, check=True, capture_output=True)
            with np.load(home / "found.npz") as found:
                worst = max(np.abs(found[key] - expected[key]).max() for key in expected)
                speed = number / float(found["seconds"])
            size = megabytes(home / name)
            print(f"{to:12} {worst:14.1e} {size:6.2f} {speed:9.1f} {speed * seconds / number:6.2f}")


if __name__ == "__main__":
    import os

    os.sched_setaffinity(0, {0})
    main()
