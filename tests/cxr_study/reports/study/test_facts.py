import dataclasses
from pathlib import Path

from cxr_study.reports.study.facts import described, facts, made_with
from cxr_study.studies.plan.data_file import StudyData


def told(finished, **changes):
    return dict(facts(dataclasses.replace(finished.results, **changes), finished.data))


def test_the_head_says_data_tests_network_runs_and_versions(finished):
    found = told(finished)
    assert found["Data"] == "phantom, 2,000 images of each data set"
    assert found["Tested on"] == "NIH: 120 images of 60 patients; MIMIC: 120 images of 60 patients"
    assert found["Network"] == "small_densenet, 32 pixels"
    assert found["Runs"] == "12 of 13 finished"
    assert found["Seeds"] == "0 and 1"
    assert found["Rounds"] == "3, patience none"
    assert found["Wall time"] == "0 min on 4 cores; CPU; 12 s a run"
    assert found["Code"] == "surgical-aggregation 9 (76636db)"
    assert "surgical-aggregation 9" in made_with(finished.results)


def test_time_in_which_runs_ran_side_by_side_counts_once_and_pauses_do_not(finished):
    one = next(iter(finished.results.results.values()))
    began_and_took = [(0, 120), (60, 120), (90, 30), (3600, 240)]
    results = {
        run.key: dataclasses.replace(one, began=began, seconds=seconds, cores=4 if began else 16)
        for run, (began, seconds) in zip(finished.results.runs, began_and_took, strict=False)
    }
    told_time = told(finished, results=results)["Wall time"]
    assert told_time == "7 min on 4 and 16 cores; CPU; 128 s a run"


def test_every_device_and_every_state_of_the_code_is_told(finished):
    results = dict(finished.results.results)
    first, second, *_ = results
    results[first] = dataclasses.replace(results[first], device="NVIDIA H100", code="9")
    results[second] = dataclasses.replace(results[second], code="9 (0123abc+)")
    found = told(finished, results=results)
    assert "; CPU and NVIDIA H100; " in found["Wall time"]
    assert found["Code"] == "surgical-aggregation 9, 9 (0123abc+) and 9 (76636db)"


def test_the_recipe_is_the_preset_with_the_knobs_that_win_over_it(finished):
    def recipe(**changes):
        found = dict(facts(finished.results, dataclasses.replace(finished.data, **changes)))
        return found["Recipe"], found["Initial body"]

    assert recipe() == ("the jobs' own knobs", "embedded")
    knobs = {"image_size": 224, "patience": 0}
    assert recipe(preset="paper", knobs=knobs, initial_body=Path("here/dense.npz")) == (
        "paper; image_size 224, patience 0",
        "dense.npz",
    )


def test_real_data_are_called_so_with_the_data_file_and_its_data_sets():
    sources = {"nih": Path("a"), "mimic": Path("b")}
    data = StudyData(Path("ours.yaml"), None, sources, Path("c"), "paper", {})
    assert described(data) == "real data (ours: NIH and MIMIC)"


def test_runs_in_a_poc_are_counted(finished):
    runs = finished.results.runs
    in_poc = dataclasses.replace(runs[0], what={**runs[0].what, "poc": True})
    results = {**finished.results.results, in_poc.key: finished.results.results[runs[0].key]}
    found = told(finished, runs=(in_poc, *runs[1:]), results=results)
    assert found["Runs"].endswith("1 of them in a POC")
