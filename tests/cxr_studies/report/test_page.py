"""The page of a study of NIH and CheXpert as two sites, whose scenarios are not alike."""

import re

import numpy as np
import pandas as pd

import study_runs
from cxr_studies.analysis.analysis import Analysis
from cxr_studies.analysis.claim_checks import judge
from cxr_studies.analysis.patient_intervals import patient_intervals
from cxr_studies.analysis.significance import significance
from cxr_studies.analysis.study_results import gather
from cxr_studies.analysis.subgroups import subgroups
from cxr_studies.papers import published_claims
from cxr_studies.plan.data_file import StudyData
from cxr_studies.plan.row import Row
from cxr_studies.plan.study_file import read_study
from cxr_studies.report import study_report

SHARED = ["Cardiomegaly", "Consolidation", "Edema", "Pneumonia"]
SITES = {
    "7": {"nih": SHARED, "chexpert": SHARED},
    "20": {"nih": [*SHARED, "Mass"], "chexpert": [*SHARED, "Fracture"]},
}
IMAGES = 60


def test_scenarios_that_are_not_alike_have_their_own_charts_tests_and_claims(tmp_path, monkeypatch):
    rng, runs = np.random.default_rng(0), []
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
            study_runs.finish(run, tmp_path, tests, predicted)
            runs.append(run)
    results = gather(read_study("nih-chexpert"), runs, tmp_path)
    claims = judge(published_claims.read(), results)
    found = significance(results)
    by_patient = patient_intervals(results, resamples=2)
    analysis = Analysis(results, found, by_patient, pd.DataFrame(), subgroups(results), claims)
    charts = []

    def bars(results, places, marks, name):
        charts.append((places, marks))
        return f"<svg>{name}</svg>"

    monkeypatch.setattr(study_report, "bars", bars)
    text = study_report.page(analysis, StudyData.model_construct(images=2000), (), ["tables.csv"])
    assert [places for places, _ in charts] == [["7"], ["20"]]
    for number, ([scenario], marks) in enumerate(charts):
        assert f"<figcaption>classes: {scenario}</figcaption><svg>bars-{number}</svg>" in text
        chosen = found[(found["pairing"] == "classes") & (found["scenario"] == scenario)]
        chosen = chosen[chosen["group"] == "all"].set_index(["method", "test"])["mark"]
        assert marks == {
            (Row(method, "fedbn+"), test): chosen[method, test]
            for method in ("vanilla", "personalised")
            for test in ("nih", "chexpert")
        }
        assert "" not in marks.values()
    assert "Over classes" in text and "Over scenarios" not in text
    assert "a pair is a scenario" not in text
    assert "NIH; 7: against Vanilla FL" in text
    assert "<li>NIH does not tell sex.</li>" in text
    calibration = re.search(r"<h2>Calibration</h2>\s*<p[^>]*>(.*?)</p>", text)[1]
    assert calibration.startswith("classes: 20.")
    assert "pooled ECE" in calibration and "mean over classes" in calibration
