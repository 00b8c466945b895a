"""Which trainings a comparison consists of, on which data, and whether they can be done."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from cxr_study.comparison.grid import Cell, Setup
from cxr_study.data.labels.label_table import classes as class_columns
from cxr_study.data.sites.partition import decisions
from cxr_study.data.sites.site_file import read_site_file, write_site_file
from cxr_study.evaluation import test_scores
from cxr_study.jobs.methods import Row
from cxr_study.phantom.demo_data import embedded_initial_body, embedded_study
from cxr_study.runs.simulated_run import prepare

EQUAL_CLASSES_ROWS = (Row("surgical", "fedavg"), Row("vanilla", "fedavg"))
"""Trained where all sites have the same classes, to see whether they are the same."""

EQUAL_CLASSES_ROUNDS = 2


def cells(
    rows: Sequence[Row],
    seeds: int,
    setup: Setup,
    *,
    site_files: Path | None,
    initial_body: Path | None,
    size: int,
) -> list[Cell]:
    """The trainings of the table, seed by seed; their data are made and decoded.

    Args:
        rows: Of the table.
        seeds: How many: 0, 1, ...
        setup: What all rows have in common.
        site_files: Folder of <site>.yaml, the same for every seed; None: the embedded phantom
            study, with patients of its own for every seed.
        initial_body: Checkpoint; None: the embedded study's.
        size: Side of the images, pixels.

    Raises:
        ValueError: A site file, or what it names, is unusable.
    """
    body = initial_body or embedded_initial_body()
    planned = []
    for seed in range(seeds):
        data = site_files or embedded_study(seed).sites
        prepare(data, setup.sites, size)
        planned += [Cell(row, seed, setup, data.absolute(), body.absolute()) for row in rows]
    return planned


def equal_classes_cells(
    setup: Setup, site_files: Path, initial_body: Path, folder: Path
) -> list[Cell]:
    """Trainings on the sites of one seed, cut down to the classes that all of them label.

    Args:
        setup: What all rows have in common; there are fewer rounds here.
        site_files: Folder of <site>.yaml.
        initial_body: Checkpoint.
        folder: For the site files that are written.

    Returns:
        None at all where no class is labelled at all sites.
    """
    files = {site: read_site_file(site_files / f"{site}.yaml") for site in setup.sites}
    held = [
        set(class_columns(test_scores.read_labels(file.path)[0].table)) for file in files.values()
    ]
    shared = sorted(set.intersection(*held))
    if not shared:
        return []
    folder.mkdir(parents=True, exist_ok=True)
    for site, file in files.items():
        write_site_file(
            folder / f"{site}.yaml",
            dataset=file.dataset,
            labels=file.labels,
            metadata=file.metadata,
            images=file.images,
            split=file.split,
            classes=shared,
            **decisions(file, shared),
        )
    few = dataclasses.replace(
        setup, rounds=EQUAL_CLASSES_ROUNDS, most_rounds=EQUAL_CLASSES_ROUNDS, patience=0
    )
    return [
        Cell(row, 0, few, folder.absolute(), initial_body, label="equal-classes-")
        for row in EQUAL_CLASSES_ROWS
    ]
