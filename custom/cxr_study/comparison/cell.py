"""One training of a comparison, in a process of its own: train, measure, keep the outcome.

Usage: python -m cxr_study.comparison.cell <cell.json> <folder> <outcome.json>

What it says and when it ends, see `training_process`.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from cxr_study.comparison import federated, outcome, solo
from cxr_study.comparison.grid import Cell, ComparisonError
from cxr_study.comparison.measures import Score
from cxr_study.comparison.outcome import Ended, Outcome
from cxr_study.data.labels.label_table import classes as class_columns
from cxr_study.evaluation import test_scores
from cxr_study.evaluation.test_scores import Network, TestSplit
from cxr_study.runs import baseline_run, training_process
from cxr_study.runs.method_job import Models
from cxr_study.runs.simulation import SimulationError
from cxr_study.runs.training_process import Tell
from surgical_aggregation.checkpoints.checkpoint import digest, load
from surgical_aggregation.site.training import tensorflow_setup


def run(cell: Cell, folder: Path, tell: Tell) -> Outcome:
    """Train and measure.

    Args:
        cell: What to train.
        folder: For jobs, workspaces and models; what an interrupted training left is removed.
        tell: How far it is.

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
    tensorflow_setup.configure(1, cell.seed)
    network = _network(cell)
    splits = [
        test_scores.load_test_split(cell.site_files / f"{site}.yaml", union, network.image_size)
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
        labels, _ = test_scores.read_labels(cell.site_files / f"{site}.yaml")
        held.update(class_columns(labels.table))
    return tuple(sorted(held))


def _network(cell: Cell) -> Network:
    knobs = baseline_run.knobs("individual", solo.own_settings(cell.setup))
    return Network(knobs["backbone"], knobs["image_size"], knobs["hidden"])


def _measure(
    models: Models, rounds: int, splits: Sequence[TestSplit], network: Network, union: Sequence[str]
) -> Ended:
    shared = frozenset.intersection(*(split.held for split in splits))
    scores: list[Score] = []
    digests = {}
    for split in splits:
        checkpoint = load(models[split.site])
        probabilities = test_scores.predict(checkpoint, network, split.pixels)
        if probabilities.isna().any(axis=None):
            raise ComparisonError(
                f"the model of {models[split.site]} predicts NaN at {split.site}. Is the learning "
                "rate too high?"
            )
        aurocs = test_scores.class_aurocs(split, probabilities, union)
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
    cell = Cell.from_json(json.loads(spec.read_text(encoding="utf-8")))
    return training_process.main(
        lambda tell: outcome.write(run(cell, folder, tell), kept), (SimulationError,)
    )


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
