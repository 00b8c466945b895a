"""A finished study, made up."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cxr_studies.plan.data_file import StudyData
from study_runs import MadeUp, probabilities, table

CLIENTS = {
    sites: {f"nih-{n + 1}": ["Edema", ("Mass", "Hernia")[n % 2]] for n in range(sites)}
    for sites in (2, 3, 4)
}
CLASSES = ("Edema", "Hernia", "Mass")
IMAGES = 120


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """Three scenarios, three methods and two seeds of study "clients"; one more run is planned."""
    study, rng = MadeUp(tmp_path_factory.mktemp("finished")), np.random.default_rng(0)
    labels = {name: (rng.random(IMAGES) < 0.4).astype(float) for name in CLASSES}
    facts = {
        "patient": [str(n // 2) for n in range(IMAGES)], "sex": ["F", "M", ""] * (IMAGES // 3),
        "age": rng.integers(20, 95, IMAGES).astype(float), "view": ["PA", "AP"] * (IMAGES // 2),
    }  # fmt: skip
    tests = {name: table(labels, **facts) for name in ("nih", "mimic")}
    for number, sites in CLIENTS.items():
        for method, skill in {"surgical": 1.5, "vanilla": 0.4, "complete": 2.5}.items():
            for seed in (0, 1):
                own = {"nih": list(CLASSES)} if method == "complete" else sites
                models = {"global": probabilities(labels, skill, rng)}
                strategy = "fedavg" if method == "complete" else "fedbn+"
                study.add(
                    models, tests, method, strategy, seed=seed, scenario=str(number), sites=own
                )
    study.plan("vanilla", seed=2, scenario="4", sites=CLIENTS[4])
    data = StudyData.model_construct(path=Path("phantom.yaml"), images=2000)
    return SimpleNamespace(results=study.gathered("clients"), data=data)
