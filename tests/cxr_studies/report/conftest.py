"""Finished studies, made up."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import study_runs
from cxr_studies.analysis.study_results import gather
from cxr_studies.plan.data_file import StudyData
from cxr_studies.plan.study_file import read_study

CLIENTS = {
    "2": {"nih-1": ["Edema", "Mass"], "nih-2": ["Edema", "Hernia"]},
    "3": {f"nih-{n}": ["Edema", name] for n, name in enumerate(("Mass", "Hernia", "Mass"), 1)},
    "4": {f"nih-{n}": ["Edema", name] for n, name in enumerate(("Mass", "Hernia") * 2, start=1)},
}
CLASSES = ("Edema", "Hernia", "Mass")
IMAGES = 120


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """Three scenarios, three methods and two seeds of study "clients"; one more run is planned."""
    folder, rng = tmp_path_factory.mktemp("finished"), np.random.default_rng(0)
    labels = {name: (rng.random(IMAGES) < 0.4).astype(float) for name in CLASSES}
    facts = {
        "patient": [str(n // 2) for n in range(IMAGES)],
        "sex": ["F", "M", ""] * (IMAGES // 3),
        "age": rng.integers(20, 95, IMAGES).astype(float),
        "view": ["PA", "AP"] * (IMAGES // 2),
    }
    tests = {name: study_runs.table(labels, **facts) for name in ("nih", "mimic")}
    runs = []
    for scenario, sites in CLIENTS.items():
        for method, skill in {"surgical": 1.5, "vanilla": 0.4, "complete": 2.5}.items():
            for seed in (0, 1):
                labelled = {"nih": list(CLASSES)} if method == "complete" else sites
                run = study_runs.run(method, seed=seed, scenario=scenario, sites=labelled)
                predicted = study_runs.probabilities(labels, skill, rng)
                study_runs.finish(run, folder, tests, {("global", t): predicted for t in tests})
                runs.append(run)
    runs.append(study_runs.run("vanilla", seed=2, scenario="4", sites=CLIENTS["4"]))
    results = gather(read_study("clients"), runs, folder)
    data = StudyData.model_construct(path=Path("phantom.yaml"), images=2000)
    return SimpleNamespace(results=results, data=data)
