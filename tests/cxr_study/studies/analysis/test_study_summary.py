import io

import numpy as np
import pytest
from rich.console import Console

import study_runs
from cxr_study.studies.analysis import study_summary
from cxr_study.studies.analysis.study_results import gather
from cxr_study.studies.plan.study_file import read_study

LABELS = {"Edema": [1.0, 0, 1, 0], "Mass": [1.0, 1, 0, 0]}
SITES = {"a": ["Edema"], "b": ["Mass"]}


@pytest.fixture
def results(tmp_path):
    """Two seeds of surgical aggregation, a site's own model, and a run that is not finished."""
    tests = {"nih": study_runs.table(LABELS)}
    runs = [study_runs.run(seed=seed, sites=SITES) for seed in (0, 1)]
    for run, right in zip(runs, (0.9, 0.2), strict=True):
        predicted = {"Edema": [0.8, 0.3, right, 0.3], "Mass": [0.9, 0.9, 0.1, 0.1]}
        study_runs.finish(run, tmp_path, tests, {("global", "nih"): predicted})
    own = study_runs.run("personalised", "fedbn", sites=SITES)
    study_runs.finish(own, tmp_path, tests, {("a", "nih"): {"Edema": [0.1, 0.2, 0.3, 0.4]}})
    unfinished = study_runs.run("vanilla", sites=SITES)
    return gather(read_study("clients"), [*runs, own, unfinished], tmp_path)


def test_every_run_is_listed_the_unfinished_without_figures(results):
    runs = study_summary.runs(results)
    assert runs["method"].tolist() == ["surgical", "surgical", "personalised", "vanilla"]
    assert runs["seconds"].tolist()[:3] == [12.0] * 3 and np.isnan(runs["seconds"].iloc[3])


def shown(seeds, width):
    console = io.StringIO()
    study_summary.show("Two sites", "sites", seeds, Console(file=console, width=width))
    return console.getvalue().splitlines()


def test_the_console_shows_means_with_intervals_and_what_is_not_defined(results):
    lines = shown(results.seeds, 150)
    assert "Two sites: mean AUROC" in lines[0]
    [surgical] = [line for line in lines if "Surgical aggregation" in line]
    assert "0.875 ± 1.588" in surgical
    [own] = [line for line in lines if "Personalised" in line]
    assert own.split()[-2:] == ["a", "-"]


def test_what_is_the_same_in_all_lines_is_left_out_and_a_terminal_is_wide_enough(results):
    seeds = results.seeds
    alike = seeds[seeds["method"] == "surgical"]
    *_, heading, line = shown(alike.assign(method="complete"), 60)
    assert heading.split() == ["sites", "method", "nih"]
    assert line.split() == ["2", "Centralised,", "fully", "labelled", "0.875", "±", "1.588"]


def test_the_console_shows_what_came_out_of_each_claim(results):
    console = io.StringIO()
    study_summary.show_claims(results, Console(file=console, width=200))
    told = "not decided: Surgical aggregation is ahead of centralised training and of vanilla FL"
    assert console.getvalue().startswith(told)
