"""The page of a study of NIH and CheXpert as two sites, whose scenarios are not alike."""

import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import study_runs
from cxr_study.jobs.methods import Row
from cxr_study.reports.study import study_report
from cxr_study.studies.analysis.analysis import Analysis
from cxr_study.studies.analysis.claim_checks import judge
from cxr_study.studies.analysis.patient_intervals import patient_intervals
from cxr_study.studies.analysis.significance import significance
from cxr_study.studies.analysis.study_results import gather
from cxr_study.studies.analysis.subgroups import subgroups
from cxr_study.studies.papers import published_claims
from cxr_study.studies.plan.data_file import StudyData
from cxr_study.studies.plan.study_file import read_study

SHARED = ["Cardiomegaly", "Consolidation", "Edema", "Pneumonia"]
SITES = {
    "7": {"nih": SHARED, "chexpert": SHARED},
    "20": {"nih": [*SHARED, "Mass"], "chexpert": [*SHARED, "Fracture"]},
}
IMAGES = 60


@pytest.fixture(scope="module")
def two_sites(tmp_path_factory):
    """Analysis of two scenarios of three rows, one of which has local models."""
    folder, rng, runs = tmp_path_factory.mktemp("two-sites"), np.random.default_rng(0), []
    for scenario, sites in SITES.items():
        union = sorted(set().union(*sites.values()))
        labels = {name: (rng.random(IMAGES) < 0.5).astype(float) for name in union}
        tests = {
            site: study_runs.table({name: labels[name] for name in names}, sex="")
            for site, names in sites.items()
        }
        for method, skill in (("surgical", 1.5), ("vanilla", 0.2), ("personalised", 0.8)):
            labelled = sites if method == "personalised" else {"global": union}
            run = study_runs.run(method, scenario=scenario, sites=sites)
            predicted = {
                (model, test): study_runs.probabilities({n: labels[n] for n in names}, skill, rng)
                for model, names in labelled.items()
                for test in tests
            }
            study_runs.finish(run, folder, tests, predicted)
            runs.append(run)
    results = gather(read_study("nih-chexpert"), runs, folder)
    claims = judge(published_claims.read(), results)
    by_patient = patient_intervals(results, resamples=2)
    tests = significance(results)
    return Analysis(results, tests, by_patient, pd.DataFrame(), subgroups(results), claims)


@pytest.fixture(scope="module")
def made(two_sites):
    """The page's text, and the arguments of its bar charts."""
    charts = {}

    def bars(results, places, marks, name):
        charts[name] = (places, marks)
        return f"<svg>{name}</svg>"

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(study_report, "bars", bars)
        data = StudyData.model_construct(images=2000)
        text = study_report.page(two_sites, data, (), ["tables.csv"])
    return SimpleNamespace(text=text, charts=charts)


def test_scenarios_that_are_not_alike_have_a_bar_chart_each_with_its_marks(two_sites, made):
    places = {name: where for name, (where, _) in made.charts.items()}
    assert places == {"bars-0": ["7"], "bars-1": ["20"]}
    tests = two_sites.tests
    for number, ((_, marks), scenario) in enumerate(zip(made.charts.values(), SITES, strict=True)):
        assert f"<figcaption>classes: {scenario}</figcaption><svg>bars-{number}</svg>" in made.text
        chosen = tests[(tests["pairing"] == "classes") & (tests["scenario"] == scenario)]
        chosen = chosen[chosen["group"] == "all"].set_index(["method", "test"])["mark"]
        assert marks == {
            (Row(method, "fedbn+"), test): chosen[method, test]
            for method in ("vanilla", "personalised")
            for test in ("nih", "chexpert")
        }
        assert "" not in marks.values()


def test_the_page_says_which_tests_scenarios_claims_and_subgroups_there_are(made):
    assert "Over classes" in made.text and "Over scenarios" not in made.text
    assert "a pair is a scenario" not in made.text
    assert "NIH; 7: against Vanilla FL" in made.text
    assert "<li>NIH does not tell sex.</li>" in made.text
    calibration = re.search(r"<h2>Calibration</h2>\s*<p[^>]*>(.*?)</p>", made.text)[1]
    assert calibration.startswith("classes: 20.")
    assert "pooled ECE" in calibration and "mean over classes" in calibration
