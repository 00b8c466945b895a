"""Studies through FLARE's simulator, one of them killed in between, and made in a POC."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import yaml
from rich.console import Console

import deployed
import study_data
from cxr_study.data.labels.label_table import classes
from cxr_study.deployment import processes
from cxr_study.evaluation import test_split
from cxr_study.studies.plan.data_file import read_data
from cxr_study.studies.plan.run_folder import FEATURES_FILE, PREDICTIONS_FILE, RUNS, read_result
from cxr_study.studies.plan.selection import Selection, StudyError
from cxr_study.studies.plan.study_file import read_study
from cxr_study.studies.runner import prediction_files
from cxr_study.studies.runner.machine_capacity import Machine
from cxr_study.studies.runner.run_study import make
from surgical_aggregation.checkpoints.checkpoint import load

STUDIES = {
    "cut": {
        "title": "One data set, cut in two",
        "source": "none",
        "factor": "sites",
        "scenarios": [{"name": "2", "cut": "nih", "sites": 2}],
        "quick": ["2"],
        "methods": {"surgical": ["fedbn+"], "complete": ["fedbn+"]},
        "seeds": 1,
        "tests": ["nih", "mimic"],
    },
    "two": {
        "title": "Two data sets",
        "source": "none",
        "factor": "classes",
        "scenarios": [{"name": "20", "sites": ["nih", "chexpert"]}],
        "quick": ["20"],
        "methods": {"surgical": ["fedbn"]},
        "seeds": 1,
        "tests": ["nih"],
    },
}
ROUNDS = 3
MACHINE = Machine(2, 16e9)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """The command that makes studies in a folder, as a process that is started."""
    home = tmp_path_factory.mktemp("study")
    data = study_data.write(home, study_data.network, num_rounds=ROUNDS)
    for name, content in STUDIES.items():
        (home / f"{name}.yaml").write_text(yaml.safe_dump(content))

    def start(name, title):
        command = [
            str(Path(sys.executable).with_name("surgagg")), "study", "run",
            str(home / f"{title}.yaml"), "--data", str(data), "--out", str(home / name),
        ]  # fmt: skip
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "SURGAGG_CACHE": str(home / "cache")},
        )

    return SimpleNamespace(start=start, home=home, data=data)


def finish(process):
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    return said


def results(folder):
    """Key of a run -> its result."""
    return {path.name: read_result(path) for path in (folder / RUNS).iterdir()}


def kill_after_a_round(process, folder):
    """Kill a study when its run has made a round; those of its processes that run on."""
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stdout.read()
        records = folder.glob("runs/*/*/part-*/server/simulate_job/run_record.jsonl")
        if any('"event": "round"' in record.read_text() for record in records):
            break
        time.sleep(0.05)
    family = psutil.Process(process.pid).children(recursive=True)
    assert family
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return psutil.wait_procs(family, timeout=60)[1]


@pytest.fixture(scope="module")
def cut(study):
    """The results of "cut", which nothing disturbed."""
    said = finish(study.start("undisturbed", "cut"))
    assert said.count("done after") == 2
    return results(study.home / "undisturbed")


@pytest.fixture(scope="module")
def killed(study):
    """Key and result of "two", which was killed and started again."""
    process = study.start("killed", "two")
    assert not kill_after_a_round(process, study.home / "killed")
    [model] = study.home.glob("killed/runs/*/*/part-0/server/simulate_job/models/last.npz")
    assert 0 < load(model).manifest["round"] < ROUNDS
    finish(study.start("killed", "two"))
    [result] = results(study.home / "killed").items()
    return result


def make_in_poc(study, data, folder):
    """Make a study in a POC."""
    return make(
        [study], read_data(data), folder, Selection(), machine=MACHINE,
        console=Console(quiet=True), project=deployed.PROJECT,
    )  # fmt: skip


@pytest.fixture(scope="module")
def in_poc(study):
    """Key and result of "two" in a POC, which nothing disturbed."""
    done = make_in_poc(read_study(study.home / "two.yaml"), study.data, study.home / "poc")
    assert not done.failures
    [run] = done.runs["two"]
    return run.key, read_result(study.home / "poc" / RUNS / run.key)


def test_every_run_is_made_with_a_global_model_and_the_same_test_sets(cut):
    assert len(cut) == 2
    for result in cut.values():
        assert result.rounds == ROUNDS and list(result.classes) == ["global"]
        assert set(result.tests) == {"nih", "mimic"}
    one, other = cut.values()
    assert one.tests == other.tests


def test_sites_with_their_own_models_are_both_tested(killed):
    assert sorted(killed[1].classes) == ["chexpert", "nih"]


def test_every_prediction_can_be_read_from_what_is_kept_alone(cut, killed, study):
    for folder in (study.home / "undisturbed", study.home / "killed"):
        for key, result in results(folder).items():
            for model, trained in result.classes.items():
                for name, kept in result.tests.items():
                    table = test_split.read(kept, folder / "test_sets")
                    predicted = prediction_files.read(folder / RUNS / key, model, name)
                    assert predicted.shape == (len(table), len(trained))
                    assert set(classes(table)) >= set(trained) or model == "chexpert"
                    assert ((predicted > 0) & (predicted < 1)).all()


def test_drift_is_on_record_for_the_classes_that_both_sites_label(cut):
    [surgical] = [r for r in cut.values() if r.column_similarity and r.column_similarity[0]]
    assert len(surgical.column_similarity) == ROUNDS
    shared = {"Cardiomegaly", "Emphysema", "Mass", "Pleural Effusion"}
    assert all(set(each) == shared for each in surgical.column_similarity)


def test_killed_and_continued_and_in_a_poc_it_is_the_same_study_bit_for_bit(in_poc, killed, study):
    (key, poc), (other, simulated) = in_poc, killed
    assert key != other  # both were made
    assert len(poc.column_similarity) == ROUNDS and all(poc.column_similarity)
    for name in ("digests", "losses", "rounds", "best_round", "column_similarity", "tests"):
        assert getattr(poc, name) == getattr(simulated, name), name
    for name in (PREDICTIONS_FILE, FEATURES_FILE):
        mine = np.load(study.home / "poc" / RUNS / key / name)
        theirs = np.load(study.home / "killed" / RUNS / other / name)
        assert mine.files == theirs.files
        for array in mine.files:
            np.testing.assert_array_equal(mine[array], theirs[array])


def test_nothing_is_left_behind(in_poc, killed, study):
    assert not processes.processes(study.home.resolve())
    assert not list(study.home.glob("*/runs/*/work"))
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            assert "nvflare" not in " ".join(child.cmdline())


def test_sites_that_the_project_does_not_have_are_refused(study, tmp_path):
    with pytest.raises(StudyError, match=r"has the sites .*; scenario '2' has others"):
        make_in_poc(read_study("clients"), study.data, tmp_path)
