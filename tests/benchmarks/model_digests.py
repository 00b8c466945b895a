"""Digests of the models that every method makes in a short run, to compare two commits.

python tests/benchmarks/model_digests.py before.json    # at the one commit
python tests/benchmarks/model_digests.py after.json     # at the other, on the same machine
diff before.json after.json

They hold on one processor with as many cores: elsewhere sums are made in another order. Encryption
draws its own random numbers, so that surgical_he has none.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

RECIPE = ("num_rounds=2", "batch_size=64", "warmup_epochs=1")
RUNS = {
    "surgical": "surgical",
    "surgical, recommended": "surgical --preset recommended --set server_optimizer=fedavgm "
    "--set head_weighting=positives --set report_counts=true --set send=differences",
    "surgical, fedbn": "surgical --set strategy=fedbn",
    "vanilla": "vanilla",
    "partial_loss": "partial_loss --set pseudo_labels=soft",
    "personalised": "personalised --set strategy=fedbn",
}
START = "from cxr_study.cli import start; start()"


def digests(folder):
    """File -> digest of its variables, of every checkpoint below a folder."""
    found = {}
    for file in sorted(folder.rglob("*.npz")):
        with np.load(file, allow_pickle=False) as arrays:
            digest = hashlib.sha256()
            for name in sorted(arrays.files):
                if isinstance(array := arrays[name], np.ndarray) and array.dtype.kind == "f":
                    digest.update(name.encode() + array.tobytes())
        found[str(file.relative_to(folder))] = digest.hexdigest()[:16]
    return found


def main():
    """Make every run, and write its digests."""
    out, *wanted = sys.argv[1:]
    made = {}
    for name, words in RUNS.items():
        if wanted and name not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder, "run")
            recipe = [word for one in RECIPE for word in ("--set", one)]
            asked = [*words.split(), "--phantom", "--out", str(run), *recipe]
            command = [sys.executable, "-c", START, "run", *asked]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            made[name] = digests(run) if done.returncode == 0 else done.stdout + done.stderr
        print(f"{name}: {len(made[name])} checkpoints", flush=True)
        Path(out).write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
