"""Three ways to average the results of many sites: what each takes in time and memory.

held    in memory until the round's end, as before
exact   added as they come: every number rounded to one grid, so that no order changes the sum
files   in files until the round's end, as the aggregator has them

Each way is a process of its own; memory is what is no file's.
    python tests/benchmarks/aggregation_designs.py --sites 8 --megabytes 1024
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import options

from surgical_aggregation.aggregation.averaging import mean
from surgical_aggregation.server.models.result_files import ArraysFile

VARIABLES = 604

GRID = 1.5 * 2.0**12
"""Added and taken away again, it rounds a float64 below 2^11 to a multiple of 2^-40."""


class Held:
    def __init__(self, folder):
        self.folder, self.kept = folder, []

    def take(self, arrays):
        self.kept.append(arrays)

    def average(self):
        return [mean([of[name] for of in self.kept], [1] * len(self.kept)) for name in self.kept[0]]


class Files(Held):
    def take(self, arrays):
        file = ArraysFile(self.folder)
        file.add(arrays)
        self.kept.append(file.arrays())


class Exact(Held):
    def take(self, arrays):
        if not self.kept:
            self.kept = [{name: np.zeros(value.shape) for name, value in arrays.items()}, 0]
        sums, number = self.kept
        for name, value in arrays.items():
            rounded = value.astype(np.float64)
            rounded += GRID
            rounded -= GRID
            sums[name] += rounded
        self.kept = [sums, number + 1]

    def average(self):
        sums, number = self.kept
        return [(value / number).astype(np.float32) for value in sums.values()]


WAYS = {"held": Held, "exact": Exact, "files": Files}


def memory():
    text = Path("/proc/self/status").read_text()
    return int(text.partition("RssAnon:")[2].split()[0]) / 1024


def measure(way, sites, megabytes):
    rng = np.random.default_rng(0)
    size = int(megabytes * 2**20 / 4 / VARIABLES)
    model = {f"v{n}": rng.standard_normal(size, dtype=np.float32) for n in range(VARIABLES)}
    before, peak, taking = memory(), 0.0, 0.0
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        kept = WAYS[way](Path(folder))
        for number in range(sites):
            result = {name: value * np.float32(1 + number / 1000) for name, value in model.items()}
            began = time.perf_counter()
            kept.take(result)
            taking += time.perf_counter() - began
            del result
            peak = max(peak, memory() - before)
        began = time.perf_counter()
        average = kept.average()
        ended = time.perf_counter() - began
        peak = max(peak, memory() - before)
    assert len(average) == VARIABLES
    print(f"{way:6} {1000 * taking / sites:9.0f} ms a result {ended:8.2f} s at the end "
          f"{peak:8.0f} MB at most")  # fmt: skip


def main():
    wanted = options(__doc__, sites=50, megabytes=28.0, way="all")
    if wanted.way != "all":
        measure(wanted.way, wanted.sites, wanted.megabytes)
        return
    print(f"{wanted.sites} sites, {wanted.megabytes:g} MB", flush=True)
    for way in WAYS:
        how = ["--way", way, "--sites", wanted.sites, "--megabytes", wanted.megabytes]
        subprocess.run([sys.executable, __file__, *map(str, how)], check=True)


if __name__ == "__main__":
    main()
