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
from cxr_study.studies.runner import predictions
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


def kill_after_a_round(process, folder):
    """Kill a study when its run has made a round; the processes that it had."""
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stdout.read()
        records = folder.glob("runs/*/*/part-*/server/simulate_job/run_record.jsonl")
        made = [record.read_text().count('"event": "round"') for record in records]
        if any(made):
            break
        time.sleep(0.05)
    family = psutil.Process(process.pid).children(recursive=True)
    assert family
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return family


@pytest.fixture(scope="module")
def cut(study):
    """What the command said of "cut", which nothing disturbed."""
    return finish(study.start("undisturbed", "cut"))


@pytest.fixture(scope="module")
def killed(study):
    """What ran on of "two" when it was killed, and its result after another start."""
    process = study.start("killed", "two")
    family = kill_after_a_round(process, study.home / "killed")
    _, left = psutil.wait_procs(family, timeout=60)
    [model] = study.home.glob("killed/runs/*/*/part-0/server/simulate_job/models/last.npz")
    assert 0 < load(model).manifest["round"] < ROUNDS
    finish(study.start("killed", "two"))
    [result] = results(study.home / "killed").items()
    return SimpleNamespace(left=left, key=result[0], result=result[1])


@pytest.fixture(scope="module")
def in_poc(study):
    """Key and result of "two" in a POC, which nothing disturbed."""
    two = read_study(study.home / "two.yaml")
    done = make(
        [two], read_data(study.data), study.home / "poc", Selection(),
        machine=MACHINE, console=Console(quiet=True), project=deployed.PROJECT,
    )  # fmt: skip
    assert not done.failures
    [run] = done.runs["two"]
    return run.key, read_result(study.home / "poc" / RUNS / run.key)


def results(folder):
    """Key of a run -> its result."""
    return {path.name: read_result(path) for path in (folder / "runs").iterdir()}


class TestStudy:
    def test_every_run_is_made_and_told(self, cut, study):
        found = results(study.home / "undisturbed")
        assert len(found) == 2
        assert all(result.rounds == ROUNDS for result in found.values())
        assert cut.count("done after") == 2

    def test_a_figure_can_be_had_from_what_is_kept_alone(self, cut, killed, study):
        for folder in (study.home / "undisturbed", study.home / "killed"):
            for key, result in results(folder).items():
                for model, held in result.classes.items():
                    for name, kept in result.tests.items():
                        table = test_split.read(kept, folder / "test_sets")
                        predicted = predictions.read(folder / "runs" / key, model, name)
                        assert predicted.shape == (len(table), len(held))
                        assert set(classes(table)) >= set(held) or model == "chexpert"
                        assert ((predicted > 0) & (predicted < 1)).all()

    def test_sites_with_models_of_their_own_are_both_tested(self, cut, killed, study):
        assert sorted(killed.result.classes) == ["chexpert", "nih"]
        found = results(study.home / "undisturbed").values()
        assert [sorted(result.classes) for result in found] == [["global"], ["global"]]

    def test_the_test_set_is_the_same_for_all_of_a_study(self, cut, study):
        one, other = (result.tests for result in results(study.home / "undisturbed").values())
        assert one == other and set(one) == {"nih", "mimic"}

    def test_drift_is_on_record_for_the_classes_that_both_sites_hold(self, cut, study):
        found = results(study.home / "undisturbed").values()
        [surgical] = [r for r in found if r.column_similarity and r.column_similarity[0]]
        assert len(surgical.column_similarity) == ROUNDS
        shared = {"Cardiomegaly", "Emphysema", "Mass", "Pleural Effusion"}
        assert all(set(each) == shared for each in surgical.column_similarity)


class TestKilledAndInPoc:
    """Killed and continued in the simulator, and undisturbed in a POC, it is the same study."""

    def test_nothing_runs_on(self, killed):
        assert not killed.left

    def test_the_models_and_all_that_is_kept_are_the_same_bit_for_bit(self, in_poc, killed):
        key, poc = in_poc
        assert key != killed.key  # both were made
        assert len(poc.column_similarity) == ROUNDS and all(poc.column_similarity)
        for name in ("digests", "losses", "rounds", "best_round", "column_similarity", "tests"):
            assert getattr(poc, name) == getattr(killed.result, name), name

    @pytest.mark.parametrize("name", [PREDICTIONS_FILE, FEATURES_FILE])
    def test_predictions_and_features_are_the_same_bit_for_bit(self, in_poc, killed, study, name):
        folders = study.home / "killed" / RUNS / killed.key, study.home / "poc" / RUNS / in_poc[0]
        mine, theirs = (np.load(folder / name) for folder in folders)
        assert mine.files == theirs.files
        for array in mine.files:
            np.testing.assert_array_equal(mine[array], theirs[array])

    def test_nothing_is_left_behind(self, in_poc, killed, study):
        assert not processes.processes(study.home.resolve())
        assert not list(study.home.glob("*/runs/*/work"))
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                assert "nvflare" not in " ".join(child.cmdline())

    def test_sites_that_the_project_does_not_have_are_refused(self, study, tmp_path):
        with pytest.raises(StudyError, match=r"has the sites .*; scenario '2' has others"):
            make(
                [read_study("clients")], read_data(study.data), tmp_path, Selection(),
                machine=MACHINE, console=Console(quiet=True), project=deployed.PROJECT,
            )  # fmt: skip
