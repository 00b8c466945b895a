import io

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import study_runs
from cxr_study.studies import summary

LABELS = {"Edema": [1.0, 0, 1, 0], "Mass": [1.0, 1, 0, 0]}
SITES = {"a": ["Edema"], "b": ["Mass"]}


@pytest.fixture
def written(tmp_path):
    """Two seeds of surgical aggregation, and a site's own model; what `write` returned."""
    tests = {"nih": study_runs.table(LABELS)}
    runs = [study_runs.run(seed=seed, sites=SITES) for seed in (0, 1)]
    for run, right in zip(runs, (0.9, 0.2), strict=True):
        predicted = {"Edema": [0.8, 0.3, right, 0.3], "Mass": [0.9, 0.9, 0.1, 0.1]}
        study_runs.finish(run, tmp_path, tests, {("global", "nih"): predicted})
    own = study_runs.run("personalised", "fedbn", sites=SITES)
    study_runs.finish(own, tmp_path, tests, {("a", "nih"): {"Edema": [0.1, 0.2, 0.3, 0.4]}})
    unfinished = study_runs.run("vanilla", sites=SITES)
    seeds = summary.write([*runs, own, unfinished], tmp_path, tmp_path / "out")
    return seeds, tmp_path / "out"


def test_class_by_class_and_means_are_csv_files(written):
    _, folder = written
    scores, means, seeds = (
        pd.read_csv(folder / name)
        for name in (summary.SCORES_FILE, summary.MEANS_FILE, summary.SEEDS_FILE)
    )
    assert len(scores) == 6
    surgical = scores[(scores["method"] == "surgical") & (scores["class"] == "Edema")]
    assert surgical["auroc"].tolist() == [1.0, 0.5]
    assert means.query("group == 'all' and method == 'surgical'")["auroc"].tolist() == [1.0, 0.75]
    line = seeds.query("group == 'all' and method == 'surgical'").iloc[0]
    assert (line["auroc"], line["seeds"]) == (0.875, 2)


def test_every_run_is_listed_the_unfinished_without_figures(written):
    runs = pd.read_csv(written[1] / summary.RUNS_FILE)
    assert runs["method"].tolist() == ["surgical", "surgical", "personalised", "vanilla"]
    assert runs["seconds"].tolist()[:3] == [12.0] * 3 and np.isnan(runs["seconds"].iloc[3])


def test_where_nothing_is_finished_there_is_nothing_to_show(tmp_path):
    assert summary.write([study_runs.run()], tmp_path, tmp_path / "out").empty
    assert (tmp_path / "out" / summary.RUNS_FILE).is_file()


def test_the_console_shows_means_with_intervals_and_what_is_not_defined(written):
    shown = io.StringIO()
    summary.show("Two sites", "sites", written[0], Console(file=shown, width=150))
    lines = shown.getvalue().splitlines()
    assert "Two sites: mean AUROC" in lines[0]
    [surgical] = [line for line in lines if "Surgical aggregation" in line]
    assert "0.875 (-0.713 to 2.463)" in surgical
    [own] = [line for line in lines if "Personalised" in line]
    assert own.split()[-2:] == ["a", "-"]
