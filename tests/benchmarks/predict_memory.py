"""Measure `surgagg predict`: images a second and peak memory, by number of images.

Usage: python tests/benchmarks/predict_memory.py MODEL IMAGES [--numbers 1000 10000]

IMAGES is a folder; links to its images, again and again, make up the numbers. Nothing is taken from
images that were decoded before.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

from cxr_study.models.prediction.found_images import find


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("images", type=Path)
    parser.add_argument("--numbers", type=int, nargs="+", default=[1000, 10000])
    given = parser.parse_args()
    files = [Path(one.path).absolute() for one in find([given.images])]
    surgagg = Path(sys.executable).with_name("surgagg")
    print(f"{'images':>8} {'seconds':>8} {'images/s':>9} {'peak MiB':>9}")
    for number in given.numbers:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            (home / "images").mkdir()
            for at, file in enumerate(islice(cycle(files), number)):
                (home / f"images/{at:06}{file.suffix}").symlink_to(file)
            own = {"SURGAGG_CACHE": str(home / "cache")}
            command = [surgagg, "predict", given.model, home / "images", "--out", home / "p.csv"]
            began = time.perf_counter()
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                     env={**os.environ, **own})  # fmt: skip
            _, status, usage = os.wait4(child.pid, 0)
            seconds = time.perf_counter() - began
            assert status == 0
        peak = usage.ru_maxrss / 1024
        print(f"{number:8} {seconds:8.1f} {number / seconds:9.1f} {peak:9.0f}", flush=True)


if __name__ == "__main__":
    main()
