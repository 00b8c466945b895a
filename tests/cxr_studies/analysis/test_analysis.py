import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import study_runs
from cxr_studies.analysis import analysis

LABELS = {"Edema": [1.0, 0, 1, 0], "Mass": [1.0, 1, 0, 0]}


@pytest.fixture
def results(study):
    """Two seeds of surgical aggregation, a local model, and a run that is not finished."""
    tests, sites = {"nih": study_runs.table(LABELS)}, {"a": ["Edema"], "b": ["Mass"]}
    for seed, right in enumerate((0.9, 0.2)):
        predicted = {"Edema": [0.8, 0.3, right, 0.3], "Mass": [0.9, 0.9, 0.1, 0.1]}
        study.add({"global": predicted}, tests, seed=seed, sites=sites)
    local = {"a": {"Edema": [0.1, 0.2, 0.3, 0.4]}}
    study.add(local, tests, "personalised", "fedbn", sites=sites)
    study.runs.append(study_runs.run("vanilla", sites=sites))
    return study.gathered("clients")


def test_every_run_is_listed_the_unfinished_without_figures(results):
    runs = analysis.runs(results)
    assert runs["method"].tolist() == ["surgical", "surgical", "personalised", "vanilla"]
    assert runs["seconds"].tolist()[:3] == [12.0] * 3 and np.isnan(runs["seconds"].iloc[3])
    made = runs[["code", "sources", "machine"]].fillna("").values.tolist()
    assert made == [["9 (76636db)", "0a1b", "M1"]] * 3 + [["", "", ""]]


def shown(show, width):
    console = io.StringIO()
    show(Console(file=console, width=width))
    return console.getvalue().splitlines()


def test_the_console_shows_means_with_intervals_and_leaves_out_what_all_lines_share(results):
    seeds = results.seeds
    title, *lines = shown(lambda console: analysis.show("Two sites", "sites", seeds, console), 80)
    assert "Two sites: mean AUROC" in title
    assert [line.split() for line in lines] == [
        ["method", "nih"],
        ["sites:", "2"],
        ["surgical,", "fedbn+,", "global", "0.875", "±", "1.588"],
        ["personalised,", "fedbn,", "a", "-"],  # not defined
    ]
    alike = seeds[seeds["method"] == "surgical"]
    wide = pd.concat(alike.assign(test=f"test set {n}") for n in range(3))
    *_, line = shown(lambda console: analysis.show("", "sites", wide, console), 60)
    assert line.startswith(" surgical, fedbn+ ")  # tests are cut, not the method


def test_the_console_shows_the_verdict_of_each_claim(results):
    line, *_ = shown(lambda console: analysis.show_claims(results, console), 200)
    message = "not decided: Surgical aggregation is ahead of centralised training and of vanilla FL"
    assert line.startswith(message)
