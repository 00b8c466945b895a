"""One training of a comparison, in a process of its own: train, measure, keep the outcome.

Usage: python -m cxr_study.comparison.cell <cell.json> <folder> <outcome.json>

Says on standard output how far it is, see `ROUND`, and why it failed, see `FAILED`.
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from cxr_study import evaluation, solo_run
from cxr_study.comparison import federated, outcome, solo
from cxr_study.comparison.grid import Cell
from cxr_study.comparison.measures import Score
from cxr_study.comparison.outcome import ComparisonError, Ended, Outcome
from cxr_study.evaluation import Network, TestSplit
from cxr_study.label_table import classes as class_columns
from cxr_study.row_job import Models
from cxr_study.simulation import SimulationError
from surgical_aggregation import tensorflow_runtime
from surgical_aggregation.checkpoint import digest, load

ROUND = "round "
"""How a line on standard output begins that says how many rounds are made."""

FAILED = "failed: "
"""How the last line on standard output begins that says why a training failed."""


def run(cell: Cell, folder: Path, tell: federated.Tell) -> Outcome:
    """Train and measure.

    Args:
        cell: What to train.
        folder: For jobs, workspaces and models; what an interrupted training left is removed.
        tell: Called with the number of rounds made.

    Raises:
        SimulationError: A job failed.
        ValueError: Something that was given is unusable, or a model predicts nothing.
    """
    began = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    union = _union(cell)
    train = federated.train if cell.row.federated else solo.train
    trained = train(cell, ",".join(union), folder, tell)
    tensorflow_runtime.configure(1, cell.seed)
    network = _network(cell)
    splits = [
        evaluation.load_test_split(cell.site_files / f"{site}.yaml", union, network.image_size)
        for site in cell.setup.sites
    ]
    endings = {
        ending: _measure(models, rounds, splits, network, union)
        for ending, (models, rounds) in trained.items()
    }
    return Outcome(cell, endings, time.monotonic() - began)


def _union(cell: Cell) -> tuple[str, ...]:
    held: set[str] = set()
    for site in cell.setup.sites:
        labels, _ = evaluation.read_labels(cell.site_files / f"{site}.yaml")
        held.update(class_columns(labels.table))
    return tuple(sorted(held))


def _network(cell: Cell) -> Network:
    knobs = solo_run.knobs("individual", solo.own_settings(cell.setup))
    return Network(knobs["backbone"], knobs["image_size"], knobs["hidden"])


def _measure(
    models: Models, rounds: int, splits: Sequence[TestSplit], network: Network, union: Sequence[str]
) -> Ended:
    shared = frozenset.intersection(*(split.held for split in splits))
    scores: list[Score] = []
    digests = {}
    for split in splits:
        checkpoint = load(models[split.site])
        probabilities = evaluation.predict(checkpoint, network, split.pixels)
        if probabilities.isna().any(axis=None):
            raise ComparisonError(
                f"the model of {models[split.site]} predicts NaN at {split.site}. Is the learning "
                "rate too high?"
            )
        aurocs = evaluation.class_aurocs(split, probabilities, union)
        digests[split.site] = digest(checkpoint.variables)
        scores += [
            Score(
                split.site, name, name in shared, name in split.held, name in probabilities, value
            )
            for name, value in aurocs.items()
        ]
    round_ = max(load(models[split.site]).manifest["round"] for split in splits)
    return Ended(round_, rounds, digests, tuple(scores))


def main(spec: Path, folder: Path, kept: Path) -> int:
    """Train the cell of a file, and write its outcome; the exit code."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    cell = Cell.from_json(json.loads(spec.read_text(encoding="utf-8")))
    try:
        outcome.write(run(cell, folder, _Rounds()), kept)
    except (ValueError, OSError, SimulationError) as error:
        _say(FAILED + " ".join(str(error).split()))
        return 1
    return 0


class _Rounds:
    """Says each number of rounds once."""

    def __init__(self) -> None:
        self._said = 0

    def __call__(self, rounds: int) -> None:
        if rounds != self._said:
            self._said = rounds
            _say(f"{ROUND}{rounds}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
