"""A study through FLARE's simulator, killed in between and started again, and the same in a POC."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
import pytest
import yaml
from rich.console import Console

import study_data
from cxr_deployment import processes
from cxr_studies.plan import run_folder
from cxr_studies.plan.data_file import read_data
from cxr_studies.plan.run_folder import FEATURES_FILE, PREDICTIONS_FILE, RUNS, read_result
from cxr_studies.plan.study_file import Selection, read_study
from cxr_studies.runner import provenance
from cxr_studies.runner.run_study import run_studies
from cxr_study.common.errors import InputError
from cxr_study.data.labels.label_table import classes
from deployed import PROJECT
from surgical_aggregation.checkpoints.checkpoint import load

STUDY = {
    "title": "Two data sets", "source": "none", "factor": "classes", "seeds": 1,
    "scenarios": [{"name": "20", "sites": ["nih", "chexpert"]}], "quick": ["20"],
    "methods": {"surgical": ["fedbn"]}, "tests": ["nih", "mimic"],
}  # fmt: skip
CUT = {
    **STUDY, "factor": "sites", "scenarios": [{"name": "2", "cut": "nih", "sites": 2}],
    "quick": ["2"], "methods": {"surgical": ["fedbn+"], "complete": ["fedbn+"]},
}  # fmt: skip
ROUNDS = 3
MODELS = "killed/runs/*/*/part-*/server/simulate_job/models/last.npz"
RECORDS = "killed/runs/*/*/part-*/server/simulate_job/run_record.jsonl"


def command(home, data, **environment):
    """`surgagg study run`, started."""
    surgagg = Path(sys.executable).with_name("surgagg")
    return subprocess.Popen(
        [surgagg, "study", "run", home / "two.yaml", "--data", data, "--out", home / "killed"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "SURGAGG_CACHE": str(home / "cache"), **environment},
    )  # fmt: skip


def kill_after_a_round(process, home):
    """Kill the study after a round of its run; returns processes that survived."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stdout.read()
        if any('"event": "round"' in record.read_text() for record in home.glob(RECORDS)):
            break
        time.sleep(0.05)
    family = psutil.Process(process.pid).children(recursive=True)
    assert family
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return psutil.wait_procs(family, timeout=60)[1]


def made(study, data, folder, project=None):
    """Key and result of the runs of a study; with FLARE's project file they are made in a POC."""
    done = run_studies(
        [study], read_data(data), folder, Selection(), at_once=2,
        console=Console(quiet=True), project=project,
    )  # fmt: skip
    assert not done.failures
    return {run.key: read_result(folder / RUNS / run.key) for run in done.runs[study.name]}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def data(home):
    (home / "two.yaml").write_text(yaml.safe_dump(STUDY))
    return study_data.write(home, study_data.network, num_rounds=ROUNDS)


@pytest.fixture(scope="module")
def killed(home, data):
    """Folder of the run that was killed and started again, and its result."""
    process = command(home, data, STOP_AFTER_A_ROUND="1")
    assert not kill_after_a_round(process, home)
    [model] = home.glob(MODELS)
    assert load(model).manifest["round"] == 1
    process = command(home, data)
    output, _ = process.communicate(timeout=800)
    assert process.returncode == 0, output
    [run] = (home / "killed" / RUNS).iterdir()
    return run, read_result(run)


def test_every_prediction_is_kept(killed, home):
    run, result = killed
    assert result.rounds == ROUNDS and set(result.tests) == {"nih", "mimic"}
    assert (result.sources, result.machine) == (provenance.sources(), provenance.machine())
    # Each site has its own model, and the server one of the body and columns of both.
    assert sorted(result.classes) == ["chexpert", "nih", "server"]
    assert {*result.classes["server"]} == {*result.classes["nih"], *result.classes["chexpert"]}
    for model, trained in result.classes.items():
        for name, kept in result.tests.items():
            table = run_folder.read_table(kept, home / "killed/test_sets")
            predicted = run_folder.read_array(run / PREDICTIONS_FILE, model, name)
            assert predicted.shape == (len(table), len(trained))
            assert set(classes(table)) >= set(trained) or (model, name) != ("nih", "nih")
            assert ((predicted > 0) & (predicted < 1)).all()


def test_killed_and_continued_and_in_a_poc_it_is_the_same_study_bit_for_bit(killed, home, data):
    run, simulated = killed
    [(key, poc)] = made(read_study(home / "two.yaml"), data, home / "poc", PROJECT).items()
    other = home / "poc" / RUNS / key
    assert key != run.name  # both were made
    assert len(poc.column_similarity) == ROUNDS and all(poc.column_similarity)
    for name in ("digests", "losses", "rounds", "best_round", "column_similarity", "tests"):
        assert getattr(poc, name) == getattr(simulated, name), name
    for name in (PREDICTIONS_FILE, FEATURES_FILE):
        mine, theirs = np.load(other / name), np.load(run / name)
        assert mine.files == theirs.files
        for array in mine.files:
            np.testing.assert_array_equal(mine[array], theirs[array])

    assert not processes.find_processes(home.resolve())
    assert not list(home.glob("*/runs/*/work"))
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            assert "nvflare" not in " ".join(child.cmdline())


def test_sites_that_the_project_does_not_have_are_refused(data, tmp_path):
    with pytest.raises(InputError, match=r"has the sites .*; scenario '2' has others"):
        made(read_study("clients"), data, tmp_path, PROJECT)


def test_one_data_set_cut_in_two_is_trained_as_it_is_and_with_complete_labels(home, data):
    (home / "cut.yaml").write_text(yaml.safe_dump(CUT))
    results = made(read_study(home / "cut.yaml"), data, home / "cut").values()
    complete, surgical = sorted(results, key=lambda result: len(result.column_similarity))
    assert surgical.tests == complete.tests
    for result in (surgical, complete):
        assert result.rounds == ROUNDS and list(result.classes) == ["global"]
    shared = {"Cardiomegaly", "Emphysema", "Mass", "Pleural Effusion"}
    assert [set(each) for each in surgical.column_similarity] == [shared] * ROUNDS
