"""A study of made-up runs."""

from types import SimpleNamespace

import pytest

import study_runs
from cxr_studies.analysis.study_results import gather
from cxr_studies.plan.study_file import read_study


@pytest.fixture
def study(tmp_path):
    """Adds finished runs to a study on NIH and CheXpert, and gathers them."""
    runs = []

    def add(models, tests, method="surgical", strategy="fedbn+", **facts):
        """Models: name -> probabilities, on each of the tests: name -> label table."""
        sites = {"nih": ["Edema", "Mass"], "chexpert": ["Edema", "Fracture"]}
        run = study_runs.run(method, strategy, **{"sites": sites, **facts})
        reached = {(model, test): models[model] for model in models for test in tests}
        study_runs.finish(run, tmp_path, tests, reached)
        runs.append(run)
        return run

    def gathered(name="nih-chexpert"):
        return gather(read_study(name), runs, tmp_path)

    return SimpleNamespace(add=add, gathered=gathered, runs=runs, folder=tmp_path)
