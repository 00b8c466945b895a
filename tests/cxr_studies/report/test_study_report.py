import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import study_runs
from cxr_studies.analysis.analysis import Analysis, analyse
from cxr_studies.analysis.claim_checks import judge
from cxr_studies.analysis.patient_intervals import patient_intervals
from cxr_studies.analysis.significance import significance
from cxr_studies.analysis.subgroups import subgroups
from cxr_studies.papers.claims import read_claims
from cxr_studies.plan.data_file import StudyData
from cxr_studies.plan.row import Row
from cxr_studies.report import study_report
from cxr_studies.report.facts import PHANTOM
from cxr_studies.report.study_report import page, write
from cxr_studies.report.tables.tables import tables
from html_page import Page
from surgical_aggregation.site.training import tensorflow_setup

FRAMES = (
    "runs", "scores", "means", "seeds", "tests", "patients", "patient_differences", "class_tests",
    "subgroups", "claims", "tables",
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def in_this_process():
    """Processes to share the work out to would take longer to start than it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tensorflow_setup, "cores", lambda: 1)
        yield


@pytest.fixture(scope="module")
def written(finished, tmp_path_factory):
    """The page's text, and the folder."""
    folder = tmp_path_factory.mktemp("report") / "clients"
    page = write(finished.results, finished.data, folder, {}, "surgagg study run clients")
    assert page == folder / "report.html"
    return page.read_text(encoding="utf-8"), folder


def test_every_number_is_in_a_csv_file_and_tables_are_latex_too(written):
    _, folder = written
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [*(f"{name}.csv" for name in FRAMES), "tables.tex", "provenance.json", "report.html"]
    )
    frames = {name: pd.read_csv(folder / f"{name}.csv") for name in FRAMES}
    assert not [name for name, frame in frames.items() if frame.empty]
    found = frames["class_tests"]  # classes have their intervals by patient next to DeLong's
    assert found["difference"].between(found["patient_low"], found["patient_high"]).all()
    text = (folder / "tables.tex").read_text(encoding="utf-8")
    assert text.count(r"\begin{table") == text.count(r"\end{table") == 3
    assert text.startswith("% Needs") and r"\label{tab:clients-nih-all}" in text


def test_next_to_the_tables_is_by_which_code_machine_and_command_they_were_made(written):
    made = json.loads((written[1] / "provenance.json").read_text(encoding="utf-8"))
    known = {name: made[name] for name in ("Command", "Sources", "Machine", "Wall time")}
    assert known == {
        "Command": "surgagg study run clients", "Sources": "0a1b", "Machine": "M1",
        "Wall time": "0 min on 4 cores; CPU; 12 s a run",
    }  # fmt: skip
    assert "surgical-aggregation 9" in made["Made with"]


def test_the_page_has_every_notice_figure_and_section_and_needs_nothing_else(written):
    page = Page(written[0])
    assert PHANTOM in page.text
    # An ablation has one bar chart, and tests over scenarios, as three are enough.
    assert page.html.count("Mean AUROC of every method, sites: 2, 3 and 4") == 1
    assert "a pair is a scenario" in page.text and "<h3>Over scenarios</h3>" in page.html
    for heading in ("Tables", "Tests", "Class by class", "Subgroups", "Calibration", "Training"):
        assert f"<h2>{heading}</h2>" in page.html
    answer = page.text[page.text.index("Mean AUROC of one model for all classes") :]
    assert "surgical aggregation" in answer[:200].lower()
    verdicts = "holds: 2, does not hold: 1, not decided: 0"
    assert f"3 claims of the papers, by intervals over 2 seeds: {verdicts}." in answer[:600]
    assert "both are shown, not compared" in page.text and "published [difference]" not in page.text
    assert page.tags.count("svg") == 13 and page.needs_nothing_else()


def test_scenarios_too_few_for_a_test_have_no_table_of_tests_over_them(finished):
    found = analyse(finished.results, 1)
    text = page(replace(found, tests=found.tests.assign(p=float("nan"))), finished.data, (), ())
    assert "Over classes" in text
    assert "Over scenarios" not in text and "a pair is a scenario" not in text


def test_a_report_made_again_is_the_same(finished, written, tmp_path):
    again = write(finished.results, finished.data, tmp_path / "clients", {})
    assert again.read_text(encoding="utf-8") == written[0]


def test_marks_in_the_tables_are_those_of_the_tests(written):
    _, folder = written
    tables = pd.read_csv(folder / "tables.csv")
    tests = pd.read_csv(folder / "tests.csv")
    chosen = tests[(tests["pairing"] == "scenarios") & (tests["group"] == "all")]
    wanted = chosen.set_index(["method", "test"])["holm"].dropna().to_dict()
    cells = tables[(tables["scenario"] == "average") & (tables["group"] == "all")]
    found = cells.set_index(["method", "test"])["holm"].dropna().to_dict()
    assert {key: pytest.approx(value, abs=1e-5) for key, value in wanted.items()} == found != {}


SHARED = ["Cardiomegaly", "Consolidation", "Edema", "Pneumonia"]
SITES = {
    "7": {"nih": SHARED, "chexpert": SHARED},
    "20": {"nih": [*SHARED, "Mass"], "chexpert": [*SHARED, "Fracture"]},
}
IMAGES = 60


def test_scenarios_that_are_not_alike_have_their_own_charts_tests_and_claims(study, monkeypatch):
    rng = np.random.default_rng(0)
    for scenario, sites in SITES.items():
        union = sorted(set().union(*sites.values()))
        labels = {name: (rng.random(IMAGES) < 0.5).astype(float) for name in union}
        own = {site: {name: labels[name] for name in names} for site, names in sites.items()}
        tests = {site: study_runs.table(of, sex="") for site, of in own.items()}
        for method, skill in (("surgical", 1.5), ("vanilla", 0.2), ("personalised", 0.8)):
            labelled = sites if method == "personalised" else {"global": union}
            models = {
                model: study_runs.probabilities({n: labels[n] for n in names}, skill, rng)
                for model, names in labelled.items()
            }
            study.add(models, tests, method, scenario=scenario, sites=sites)
    results = study.gathered()
    claims = judge(read_claims(), results)
    found = significance(results)
    by_patient = patient_intervals(results, resamples=2)
    analysis = Analysis(results, found, by_patient, pd.DataFrame(), subgroups(results), claims)
    charts = []

    def bars(results, places, marks, name):
        charts.append((places, marks))
        return f"<svg>{name}</svg>"

    monkeypatch.setattr(study_report, "bars", bars)
    data = StudyData.model_construct(images=2000)
    laid_out = tables(results, "phantom", data_use=None)
    text = study_report.page(analysis, data, laid_out, ["tables.csv"])
    assert "<small>published 0.84 ± 0.05 *</small>" in text  # vanilla, on NIH, as in Table 1
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
    assert "NIH, own classes; 7: against Vanilla FL, batch norm frozen" in text
    assert "<li>NIH has no information on sex.</li>" in text
    calibration = re.search(r"<h2>Calibration</h2>\s*<p[^>]*>(.*?)</p>", text)[1]
    assert calibration.startswith("classes: 20.")
    assert "pooled ECE" in calibration and "mean over classes" in calibration
