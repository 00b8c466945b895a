"""A made-up study: what models predict, or what they reach, is given; nothing is trained."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd

from cxr_studies.analysis.study_results import StudyResults, by_run, gather, over_seeds
from cxr_studies.plan import run_folder
from cxr_studies.plan.row import Row
from cxr_studies.plan.run_folder import RUNS, TEST_SETS, Result, Run, write_result
from cxr_studies.plan.study_file import Scenario, Study, read_study

SITES = {"nih": ["Edema", "Mass"], "chexpert": ["Edema", "Fracture"]}
LACKS = None
"""In place of an AUROC: the model does not have the class."""

RESULT = Result(
    began=1000.0, seconds=12.0, cores=4, device="CPU", code="9 (76636db)", sources="0a1b",
    machine="M1", rounds=3, best_round=2,
    losses=(0.5, 0.4, 0.3, 0.35), column_similarity=({"Edema": 0.9},) * 3, tests={}, classes={},
    digests={}, aurocs=(0.5, 0.6, 0.8, 0.7), images=2000,
)  # fmt: skip

NEGATIVES = 10
LABELS = [1.0, 1.0] + [0.0] * NEGATIVES


def table(labels, **facts):
    """A test set's label table; labels: class -> values, one for each image."""
    images = len(next(iter(labels.values())))
    names = [str(n) for n in range(images)]
    descriptors = {"image": [f"{name}.png" for name in names], "patient": names}
    return pd.DataFrame({**descriptors, "view": "PA", "sex": "F", "age": 50.0, **facts, **labels})


def probabilities(labels, skill, rng):
    """Class -> probabilities that follow the labels the more, the larger the skill."""
    return {
        name: 1 / (1 + np.exp(-(skill * (values - 0.5) + rng.normal(size=len(values)))))
        for name, values in labels.items()
    }


def reaching(auroc):
    """Probabilities for `LABELS` with an AUROC, a multiple of 0.05 from 0.5 to 1."""
    below = round((auroc - 0.5) * 2 * NEGATIVES)
    return [1.0, below / NEGATIVES, *((np.arange(NEGATIVES) + 0.5) / NEGATIVES)]


def run(method="surgical", strategy="fedbn+", seed=0, scenario="2", sites=SITES, **settings):
    """A planned run; settings: name -> value."""
    row = Row(method, strategy)
    what = {
        "method": method, "strategy": strategy, "seed": seed, "scenario": scenario, "sites": sites,
        "settings": {"num_rounds": 3, "image_size": 32, "batch_size": 8, "patience": 0, **settings},
        "network": {"backbone": "small_densenet", "image_size": 32, "hidden": 0},
        "packages": {"surgical-aggregation": "9"},
    }  # fmt: skip
    return Run(scenario, row, seed, what, {"sites": list(sites), "given": False})


class MadeUp:
    """A study whose runs are made up one by one, in a folder; they are gathered in the end.

    Its sites are `sites` where a run has no others.
    """

    def __init__(self, folder, sites=SITES):
        self.folder, self.sites, self.runs = folder, sites, []

    def plan(self, *args, **facts):
        """A run that is not finished; see `run`."""
        self.runs.append(run(*args, **{"sites": self.sites, **facts}))
        return self.runs[-1]

    def finish(self, reached, tests=None, result=(), **facts):
        """A finished run, and what it would leave in the folder of studies.

        `reached`: (model, test set) -> class -> probabilities, or an AUROC; tests (name -> label
        table) have `LABELS` for all classes of the sites by default; `result`: what is special.
        """
        planned = self.plan(**facts)
        union = sorted(set().union(*planned.what["sites"].values()))
        tests = tests or {test: table(dict.fromkeys(union, LABELS)) for _, test in reached}
        frames = {
            key: pd.DataFrame(
                {c: reaching(v) if np.isscalar(v) else v for c, v in each.items()}, dtype=np.float32
            )
            for key, each in reached.items()
        }
        place = self.folder / RUNS / planned.key
        place.mkdir(parents=True)
        arrays = {key: frame.to_numpy() for key, frame in frames.items()}
        run_folder.write_arrays(arrays, place / run_folder.PREDICTIONS_FILE)
        features = dict.fromkeys(frames, np.zeros((1, 2), np.float32))
        run_folder.write_arrays(features, place / run_folder.FEATURES_FILE)
        kept = self.folder / TEST_SETS
        left = {
            "tests": {name: run_folder.keep_table(each, kept) for name, each in tests.items()},
            "classes": {model: list(frame) for (model, _), frame in frames.items()},
            "digests": {model: "0" for model, _ in frames},
        }
        write_result(dataclasses.replace(RESULT, **{**left, **dict(result)}), place)
        return planned

    def add(self, models, tests, method="surgical", strategy="fedbn+", **facts):
        """A finished run whose models predict the same on all tests; models: name -> classes."""
        reached = {(model, test): models[model] for model in models for test in tests}
        return self.finish(reached, tests, method=method, strategy=strategy, **facts)

    def reach(self, auroc, *tests, classes=("Edema", "Mass", "Hernia"), **facts):
        """A finished run whose global model reaches the same for all classes, on NIH by default."""
        reached = dict.fromkeys(classes, auroc)
        return self.finish({("global", test): reached for test in tests or ("nih",)}, **facts)

    def gathered(self, study="nih-chexpert"):
        """Results of a study, or of a shipped one's name."""
        study = read_study(study) if isinstance(study, str) else study
        return gather(study, self.runs, self.folder)

    def results(self, factor="sites"):
        """Of a small study: scenarios are in the order of their names, rows in the runs' order."""
        methods = {}
        for row in dict.fromkeys(each.row for each in self.runs):
            methods[row.method] = (*methods.get(row.method, ()), row.strategy)
        scenarios = sorted({each.scenario for each in self.runs})
        study = Study.model_construct(
            name="small", title="Small", source="", factor=factor, quick=(), methods=methods,
            scenarios=tuple(Scenario(name=name, cut="nih", sites=2) for name in scenarios),
            seeds=1, tests=("nih", "chexpert", "mimic"),
        )  # fmt: skip
        return self.gathered(study)


def of_global(reached, test="nih"):
    """For `scored`: a global model on one test set; reached: run -> {class: AUROC}."""
    return {run: {("global", test): classes} for run, classes in reached.items()}


def scored(reached, planned=(), study="clients", digests=lambda run: {"global": run.key}):
    """Results of a study, by the name of a shipped one, of AUROCs alone: nothing is written.

    `reached`: finished run -> {(model, test set): {class: AUROC}}, NaN: not defined; `planned`:
    runs that are not finished; `digests`: run -> {model: digest}.
    """
    scores = pd.DataFrame(
        _score(run, model, test, name, value)
        for run, models in reached.items()
        for (model, test), classes in models.items()
        for name, value in classes.items()
    )
    means = by_run(scores)
    kept = {run.key: dataclasses.replace(RESULT, digests=digests(run)) for run in reached}
    of = (read_study(study), Path("nowhere"), (*reached, *planned))
    return StudyResults(*of, kept, scores, means, over_seeds(means))


def _score(run, model, test, name, value):
    holders = [name in labelled for labelled in run.what["sites"].values()]
    return {
        **run.facts, "model": model, "test": test, "class": name, "sites": sum(holders),
        "shared": all(holders), "labelled": True, "predicted": value is not LACKS,
        "positives": 10, "negatives": 10, "auroc": np.nan if value is LACKS else value,
        "auprc": 0.5, "bce": 0.3, "ece": 0.1,
    }  # fmt: skip
