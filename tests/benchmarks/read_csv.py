"""CPU seconds and memory of reading CheXpert's label csv, beside `pandas.read_csv` of it.

Usage: python tests/benchmarks/read_csv.py [--rows 223414]

The csv is drawn: CheXpert's columns and paths, a third of the cells filled. Each reader runs in a
process of its own.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from measure import options

CODE = """
import resource, sys, time
from pathlib import Path
import pandas as pd
from cxr_study.data.readers import chexpert
read = pd.read_csv if sys.argv[1] == "pandas" else chexpert.read
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before, start = peak(), time.process_time()
table = read(Path(sys.argv[2]))
print(time.process_time() - start, peak() - before)
"""


def draw(csv, rows):
    from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES

    rng = np.random.default_rng(0)
    patients = np.sort(rng.integers(1, 64541, rows))
    labels = np.array(["1.0", "0.0", "-1.0", ""])[
        rng.choice(4, (rows, len(CHEXPERT_CLASSES)), p=[0.15, 0.1, 0.05, 0.7])
    ]
    with csv.open("w") as file:
        header = ("Path", "Sex", "Age", "Frontal/Lateral", "AP/PA", *CHEXPERT_CLASSES)
        print(*header, sep=",", file=file)
        for row, patient in enumerate(patients):
            path = f"CheXpert-v1.0/train/patient{patient:05}/study1/view{row + 1}_frontal.jpg"
            print(path, "Male", 20 + row % 70, "Frontal", "AP", *labels[row], sep=",", file=file)


def main():
    given = options(__doc__, rows=223_414)
    with tempfile.TemporaryDirectory() as folder:
        csv = Path(folder, "train.csv")
        draw(csv, given.rows)
        found = {}
        for reader in ("pandas", "chexpert") * 3:
            command = [sys.executable, "-c", CODE, reader, str(csv)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found.setdefault(reader, []).append([float(text) for text in output.split()])
    best = {reader: np.min(times, axis=0) for reader, times in found.items()}
    for reader, (seconds, mib) in best.items():
        print(f"{reader:10}{seconds:8.2f} CPU s{mib:8.0f} MiB")
    ratios = best["chexpert"] / best["pandas"]
    print(f"ratio     {ratios[0]:8.1f}      {ratios[1]:8.1f}")


if __name__ == "__main__":
    main()
