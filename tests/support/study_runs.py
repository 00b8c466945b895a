"""Finished runs of a study, made up: what models predict is given, nothing is trained."""

import dataclasses

import numpy as np
import pandas as pd

from cxr_studies.plan import kept_tables
from cxr_studies.plan.planned_run import Run
from cxr_studies.plan.row import Row
from cxr_studies.plan.run_folder import RUNS, TEST_SETS, Result, write_result
from cxr_studies.runner import prediction_files
from cxr_study.evaluation.predictions import Predictions

SITES = {"a": ["Edema", "Mass"], "b": ["Edema", "Fracture"]}

RESULT = Result(
    began=1000.0, seconds=12.0, cores=4, device="CPU", code="9 (76636db)", rounds=3, best_round=2,
    losses=(0.5, 0.4, 0.3, 0.35), column_similarity=({"Edema": 0.9},) * 3, tests={}, classes={},
    digests={}, aurocs=(0.5, 0.6, 0.8, 0.7), images=2000,
)  # fmt: skip


def methods(rows):
    """Method -> strategies of some rows, as a study has them."""
    found = {}
    for row in dict.fromkeys(rows):
        found[row.method] = (*found.get(row.method, ()), row.strategy)
    return found


def table(labels, **facts):
    """A test set's label table; labels: class -> values, one for each image."""
    images = len(next(iter(labels.values())))
    descriptors = {
        "image": [f"{n}.png" for n in range(images)],
        "patient": [str(n) for n in range(images)],
        "view": "PA",
        "sex": "F",
        "age": 50.0,
    }
    return pd.DataFrame({**descriptors, **facts, **labels})


def probabilities(labels, skill, rng):
    """Class -> probabilities that follow the labels the more, the larger the skill."""
    return {
        name: 1 / (1 + np.exp(-(skill * (values - 0.5) + rng.normal(size=len(values)))))
        for name, values in labels.items()
    }


def run(method="surgical", strategy="fedbn+", seed=0, scenario="2", sites=SITES, **settings):
    """A planned run; settings: name -> value."""
    row = Row(method, strategy)
    what = {
        "method": method,
        "strategy": strategy,
        "seed": seed,
        "scenario": scenario,
        "sites": sites,
        "settings": {"num_rounds": 3, "image_size": 32, "batch_size": 8, "patience": 0, **settings},
        "network": {"backbone": "small_densenet", "image_size": 32, "hidden": 0},
        "packages": {"surgical-aggregation": "9"},
    }
    return Run(scenario, row, seed, what, {"sites": list(sites), "given": False})


def finish(planned, folder, tests, predicted, **changes):
    """Put what a run would leave into the folder of studies.

    `tests`: test set -> label table; `predicted`: (model, test set) -> {class: probabilities};
    `changes`: of the result.
    """
    place = folder / RUNS / planned.key
    place.mkdir(parents=True)
    frames = {key: pd.DataFrame(values, dtype=np.float32) for key, values in predicted.items()}
    features = np.zeros((1, 2), np.float32)
    prediction_files.write(
        {key: Predictions(None, frame, features) for key, frame in frames.items()}, place
    )
    facts = {
        "tests": {name: kept_tables.keep(kept, folder / TEST_SETS) for name, kept in tests.items()},
        "classes": {model: list(frame) for (model, _), frame in frames.items()},
        "digests": {model: "0" for model, _ in frames},
    }
    write_result(dataclasses.replace(RESULT, **{**facts, **changes}), place)
