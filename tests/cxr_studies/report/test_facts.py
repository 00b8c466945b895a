import dataclasses
from pathlib import Path

import pandas as pd
import pytest

import study_runs
from cxr_studies.analysis.claim_checks import HOLDS, Finding
from cxr_studies.analysis.intervals_and_tests import Interval
from cxr_studies.papers.claims import Comparison
from cxr_studies.plan.data_file import StudyData
from cxr_studies.plan.row import Row
from cxr_studies.report import facts as module
from cxr_studies.report.facts import PHANTOM, describe_finding, notices, report_header
from study_runs import of_global, scored

REAL = StudyData.model_construct(path=Path("mine.yaml"))
SURGICAL, VANILLA = Row("surgical", "fedbn+"), Row("vanilla", "fedbn+")
ALONE = Row("individual", "fedavg")
FOUND = Interval(0.05, 0.02, 0.08, 3)
RESULTS = scored(of_global({study_runs.run(): {"Edema": 0.8}}))
ALL = tuple(scenario.name for scenario in RESULTS.study.scenarios)


def facts_of(finished, **changes):
    return dict(report_header(dataclasses.replace(finished.results, **changes), finished.data))


def test_the_head_says_data_tests_network_runs_and_versions(finished):
    assert facts_of(finished) == {
        "Data": "phantom, 2,000 images of each data set",
        "Tested on": "NIH: 120 images of 60 patients; MIMIC: 120 images of 60 patients",
        "Network": "small_densenet, 32 pixels", "Recipe": "the jobs' own settings",
        "Initial body": "the phantom's", "Rounds": "3, patience none", "Seeds": "0 and 1",
        "Runs": "18 of 19 finished", "Wall time": "0 min on 4 cores; CPU; 12 s a run",
        "Code": "surgical-aggregation 9 (76636db)", "Sources": "0a1b", "Machine": "M1",
    }  # fmt: skip
    assert "surgical-aggregation 9" in module.package_versions(finished.results)
    settings, body = {"image_size": 224, "patience": 0}, Path("here/dense.npz")
    own = {"chexpert": {"learning_rate": 5e-5, "epochs": 2}}
    real = {"preset": "paper", "settings": settings, "initial_body": body, "per_site": own}
    data = REAL.model_copy(update={"data": {"nih": Path("a"), "mimic": Path("b")}, **real})
    found = dict(report_header(finished.results, data))
    assert found["Data"] == "real data (mine: NIH and MIMIC)"
    alone = "at chexpert, if not pooled, learning_rate 5e-05, epochs 2"
    assert found["Recipe"] == f"paper; image_size 224, patience 0; {alone}"
    assert found["Initial body"] == "dense.npz"


def test_time_devices_and_states_of_the_code_are_those_of_all_runs(finished):
    one = next(iter(finished.results.results.values()))
    first, second, third, last, *_ = finished.results.runs
    in_poc = dataclasses.replace(third, what={**third.what, "poc": True})
    elsewhere = {"cores": 16, "device": "NVIDIA H100", "code": "9", "sources": ""}
    runs = {  # side by side, then after a pause
        first: {"began": 0, "seconds": 120, **elsewhere},
        second: {"began": 60, "seconds": 120, "code": "9 (0123abc+)"},
        in_poc: {"began": 90, "seconds": 30},
        last: {"began": 3600, "seconds": 240},
    }
    results = {run.key: dataclasses.replace(one, **changes) for run, changes in runs.items()}
    found = facts_of(finished, runs=tuple(runs), results=results)
    assert found["Wall time"] == "7 min on 4 and 16 cores; CPU and NVIDIA H100; 128 s a run"
    assert found["Code"] == "surgical-aggregation 9, 9 (0123abc+) and 9 (76636db)"
    assert found["Sources"] == "0a1b and not kept"
    assert found["Runs"] == "4 of 4 finished, 1 of them in a POC"


def noticed(*runs, data=REAL, planned=(), study="clients"):
    """Notices about finished and planned runs."""
    finished = of_global({run: {"Edema": 0.8} for run in runs})
    return list(notices(scored(finished, planned, study), data))


def test_a_part_of_the_studys_file_is_named_as_one_with_only_what_is_less():
    runs = [study_runs.run(scenario=name) for name in ("10", "2")]
    planned = [study_runs.run("vanilla", scenario="4")]
    methods = "2 of 7 methods with their strategies"
    part = f"A part of the study: 3 of 7 scenarios (2, 4, 10), {methods}, 1 of 3 seeds."
    assert part in noticed(*runs, planned=planned)

    def of(**changes):
        study = RESULTS.study.model_copy(update={"methods": {"surgical": ("fedbn+",)}, **changes})
        return next(notices(dataclasses.replace(RESULTS, study=study), REAL))

    assert of() == "A part of the study: 1 of 7 scenarios (2), 1 of 3 seeds."
    scenarios = tuple(each for each in RESULTS.study.scenarios if each.name == "2")
    assert "A part" not in of(scenarios=scenarios, seeds=1)


def test_phantom_data_unfinished_runs_missing_test_sets_and_a_lone_seed_are_noticed():
    phantom = REAL.model_copy(update={"images": 2000})
    found = noticed(study_runs.run(), data=phantom, planned=[study_runs.run(seed=1)])
    assert found[0] == PHANTOM
    assert "1 of 2 runs are not finished; results are of the others." in found
    assert "Not tested on mimic: the data file does not have it." in found
    assert found[-1].startswith("One seed")
    several = noticed(study_runs.run(), study_runs.run(seed=1))
    assert PHANTOM not in several and "One seed" not in " ".join(several)


def test_subgroups_that_a_test_set_does_not_tell_or_cannot_compare_are_named():
    kinds = [("nih", "sex", 3), ("nih", "age", 0), ("nih", "view", 0.5), ("mimic", "view", 2)]
    lines = [(*kind, subgroup) for kind in kinds for subgroup in "ab"]
    frame = pd.DataFrame(lines, columns=["test", "kind", "compared", "subgroup"])
    assert list(module.without_subgroups(frame)) == [
        "NIH, by age: no class has 10 positives and 10 negatives in every subgroup.",
        "MIMIC has no information on sex and age.",
    ]
    assert not list(module.without_subgroups(frame.iloc[:0]))


def finding(worse=VANILLA, difference=FOUND, better=SURGICAL, scenarios=ALL, **which):
    """The description of a comparison on NIH: where, against whom, how much."""
    comparison = Comparison(better, worse, "nih", **which)
    return describe_finding(Finding(comparison, scenarios, difference, HOLDS), RESULTS)


def test_a_finding_tells_where_and_how_much():
    assert finding() == ("NIH", "against Vanilla FL", "+0.050 (+0.020 to +0.080)")
    assert finding(group="shared")[0] == "NIH, shared classes"
    assert finding(other_test="mimic")[0] == "NIH minus MIMIC"
    found = finding(group="chexpert", scenarios=("2", "4"))
    assert found[0] == "NIH, classes of CheXpert; 2, 4"
    assert finding(difference=Interval(0.05, None, None, 1))[2] == "+0.050"
    assert finding(difference=None)[2] == "\N{EN DASH}"


PARTIAL, OF_FEDAVG = Row("partial_loss", "fedbn+"), Row("surgical", "fedavg")


@pytest.mark.parametrize(("found", "against"), [
    (finding(Row("surgical", "fedbn")), "against Surgical aggregation, batch norm local"),
    (finding(ALONE, model="chexpert"), "against Individual, model of CheXpert"),
    (finding(Row("surgical", "fedbn"), model="server"),
     "against Surgical aggregation, batch norm local, server's model"),
    (finding(margin=0.03), "against Vanilla FL (margin 0.03)"),
    (finding(Row("partial_loss", "fedavg"), better=PARTIAL), "FL with partial loss, batch norm "
     "frozen, against FL with partial loss, batch norm averaged"),
    (finding(better=OF_FEDAVG), "Surgical aggregation, batch norm averaged, against Vanilla FL"),
    (finding(SURGICAL, better=VANILLA), "Vanilla FL, against Surgical aggregation"),
])  # fmt: skip
def test_who_is_compared_is_named_as_far_as_it_is_not_clear(found, against):
    assert found[1] == against
