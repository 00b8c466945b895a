"""The fault table of poc/README.md, from the tests: what each fault costs on this machine.

python tests/benchmarks/fault_table.py
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).parents[1] / "poc/test_faults.py"
HEAD = "| fault | FLARE's job | repeated | seconds | final model |\n|---|---|---|---|---|"
ENDS = {
    "FINISHED:EXECUTION_EXCEPTION": "fails",
    "FINISHED:ABORTED": "is aborted",
    "LOST": "stays RUNNING for ever",
}


def row(entry):
    away = entry["distance"]
    same = "bit-equal" if away == 0 else f"{away:.1e} away after those rounds"
    ended = ENDS.get(entry["ended"], entry["ended"])
    seconds = "-" if entry["seconds"] is None else f"{entry['seconds']:.0f}"
    return f"| {entry['fault']} | {ended} | {entry['repeated']} | {seconds} | {same} |"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "rows.jsonl"
        command = [sys.executable, "-m", "pytest", "-q", str(TESTS)]
        subprocess.run(command, check=True, env={**os.environ, "FAULT_TABLE": str(table)})
        print(HEAD)
        for line in table.read_text().splitlines():
            print(row(json.loads(line)))
