"""A study through FLARE's simulator: made, made again, and killed in between."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
import yaml

import study_data
from cxr_study.label_table import classes
from cxr_study.studies import predictions, test_set
from cxr_study.studies.run_folder import read_result

pytestmark = [pytest.mark.keras, pytest.mark.simulator]

STUDY = {
    "title": "Two sites",
    "source": "none",
    "factor": "sites",
    "settings": [{"name": "2", "cut": "nih", "sites": 2}],
    "quick": ["2"],
    "methods": {"surgical": ["fedbn+"], "personalised": ["fedbn"], "complete": ["fedbn+"]},
    "seeds": 1,
    "tests": ["nih", "mimic"],
}
ROUNDS = 5


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """The command that makes a study in a folder, as a process that is started."""
    home = tmp_path_factory.mktemp("study")
    data = study_data.write(home, num_rounds=ROUNDS)
    (home / "two.yaml").write_text(yaml.safe_dump(STUDY))

    def start(name):
        command = [
            str(Path(sys.executable).with_name("surgagg")), "study", "run", str(home / "two.yaml"),
            "--data", str(data), "--out", str(home / name),
        ]  # fmt: skip
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "SURGAGG_CACHE": str(home / "cache")},
        )

    return SimpleNamespace(start=start, home=home)


def finish(process):
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    return said


def kill_after_a_round(process, folder, rounds):
    """Kill a study when a federated run has made so many rounds; the processes that it had."""
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        assert process.poll() is None, process.stdout.read()
        records = folder.glob("runs/*/*/part-*/server/simulate_job/run_record.jsonl")
        made = [record.read_text().count('"event": "round"') for record in records]
        if any(count >= rounds for count in made):
            break
        time.sleep(0.05)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return family


@pytest.fixture(scope="module")
def made(study):
    """The study made once, and once more with two kills."""
    said = finish(study.start("undisturbed"))
    again = finish(study.start("undisturbed"))
    left = []
    for rounds in (2, 1):  # in the second part of a run, a round is enough
        family = kill_after_a_round(study.start("killed"), study.home / "killed", rounds)
        _, alive = psutil.wait_procs(family, timeout=60)
        left += alive
    finish(study.start("killed"))
    return SimpleNamespace(said=said, again=again, left=left)


def results(folder):
    """Key of a run -> its result."""
    return {path.name: read_result(path) for path in (folder / "runs").iterdir()}


class TestStudy:
    def test_every_run_is_made_and_told(self, made, study):
        found = results(study.home / "undisturbed")
        assert len(found) == 3
        assert all(result.rounds == ROUNDS for result in found.values())
        assert made.said.count("done after") == 3

    def test_a_run_that_is_there_is_not_made_again(self, made):
        assert "done after" not in made.again

    def test_a_figure_can_be_had_from_what_is_kept_alone(self, made, study):
        folder = study.home / "undisturbed"
        for key, result in results(folder).items():
            for model, held in result.classes.items():
                for name, kept in result.tests.items():
                    table = test_set.read(kept, folder / "test_sets")
                    predicted = predictions.read(folder / "runs" / key, model, name)
                    assert predicted.shape == (len(table), len(held))
                    assert set(classes(table)) >= set(held)
                    assert ((predicted > 0) & (predicted < 1)).all()

    def test_sites_with_models_of_their_own_are_both_tested(self, made, study):
        found = results(study.home / "undisturbed").values()
        assert sorted(sorted(result.classes) for result in found) == [
            ["global"], ["global"], ["nih-1", "nih-2"],
        ]  # fmt: skip

    def test_the_test_set_is_the_same_for_all(self, made, study):
        found = results(study.home / "undisturbed").values()
        assert len({result.tests["mimic"] for result in found}) == 1
        assert len({result.tests["nih"] for result in found}) == 1

    def test_drift_is_on_record_for_the_classes_that_both_sites_hold(self, made, study):
        found = results(study.home / "undisturbed").values()
        [surgical] = [r for r in found if r.column_similarity and r.column_similarity[0]]
        assert len(surgical.column_similarity) == ROUNDS
        shared = {"Cardiomegaly", "Emphysema", "Mass", "Pleural Effusion"}
        assert all(set(each) == shared for each in surgical.column_similarity)


class TestKilled:
    def test_nothing_runs_on(self, made):
        assert not made.left

    def test_the_results_are_those_of_the_undisturbed_study(self, made, study):
        undisturbed, killed = (results(study.home / name) for name in ("undisturbed", "killed"))
        assert undisturbed.keys() == killed.keys()
        for key, result in undisturbed.items():
            other = killed[key]
            for name in ("rounds", "best_round", "losses", "column_similarity", "tests", "digests"):
                assert getattr(result, name) == getattr(other, name), (key, name)

    def test_the_predictions_are_bit_for_bit(self, made, study):
        for path in (study.home / "undisturbed/runs").glob("*/*.npz"):
            with (
                np.load(path) as one,
                np.load(study.home / "killed/runs" / path.parent.name / path.name) as other,
            ):
                assert one.files == other.files
                for name in one.files:
                    np.testing.assert_array_equal(one[name], other[name])
