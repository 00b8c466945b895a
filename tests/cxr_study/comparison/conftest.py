"""Made-up outcomes of trainings."""

from pathlib import Path

import pytest

from cxr_study.comparison.grid import ENDINGS, Cell, Setup
from cxr_study.comparison.measures import Score
from cxr_study.comparison.outcome import Ended, Outcome
from cxr_study.comparison.summary import Summary, lines, verdicts
from cxr_study.jobs.methods import Row

SETUP = Setup(("nih", "chexpert"), rounds=2, most_rounds=4, patience=1, settings={"epochs": 1})


def cell(method="surgical", strategy="fedbn+", seed=0, **changes):
    """A training."""
    return Cell(Row(method, strategy), seed, SETUP, Path("/sites"), Path("/body.npz"), **changes)


def scores(shared=0.8, own=0.7, other=0.6, own_models=False):
    """One shared class, and one that each site alone has; all classes of a kind score alike."""
    made = []
    for site, unique, foreign in (("nih", "Mass", "Fracture"), ("chexpert", "Fracture", "Mass")):
        lacks = own_models
        made += [
            Score(site, "Edema", True, True, True, shared),
            Score(site, unique, False, True, True, own),
            Score(site, foreign, False, False, not lacks, None if lacks else other),
        ]
    return tuple(made)


def outcome(training, digest="a", **values):
    """An outcome with the same scores at both endings; see `scores`."""
    ended = Ended(2, 4, dict.fromkeys(training.setup.sites, digest), scores(**values))
    return Outcome(training, dict.fromkeys(ENDINGS, ended), 10.0)


@pytest.fixture
def made_up():
    """`outcome` and `cell`, for tests."""

    class MadeUp:
        pass

    MadeUp.cell, MadeUp.outcome, MadeUp.scores = map(staticmethod, (cell, outcome, scores))
    return MadeUp


@pytest.fixture
def summary():
    """Two rows with three seeds, one row that failed, and sites' own models."""
    rows = (
        Row("surgical", "fedbn+"),
        Row("surgical", "fedbn"),
        Row("vanilla", "fedbn+"),
        Row("partial_loss", "fedbn+"),
    )
    outcomes = [
        outcome(cell(row.method, row.strategy, seed), **values)
        for row, values in (
            (rows[0], {"other": 0.75}),
            (rows[1], {"own_models": True}),
            (rows[2], {"other": 0.55, "own": 0.6}),
        )
        for seed in range(3)
    ]
    return Summary(
        setup=SETUP,
        seeds=3,
        phantom=True,
        lines=lines(rows, outcomes),
        verdicts=verdicts(outcomes),
        equal_classes="reproduced",
        failures={"partial_loss-fedbn+-seed0": "no <disk>. See runs/x.log"},
        seconds=90.0,
        version="1.2.3",
    ), outcomes
