"""A program of a few lines makes the trainings; how side by side is in `test_side_by_side`."""

import json
import sys

import pytest

from cxr_study.comparison import cell, outcome, schedule
from cxr_study.comparison.grid import ComparisonError
from cxr_study.runs.run_queue import DONE, FAILS, KEPT, STARTS

DO = 'shutil.copyfile(made, kept); note("done")\n'


@pytest.fixture
def train(made_up, tmp_path, monkeypatch):
    """Run trainings with a program in the place of the real one; adds what was told."""

    def train(program, seeds=(0,), at_once=1):
        cells = [made_up.cell(seed=seed) for seed in seeds]
        for each in cells:
            outcome.write(made_up.outcome(each), tmp_path / f"{each.seed}.made")
        file = tmp_path / "train.py"
        file.write_text(
            "import json, pathlib, shutil, sys, time\n"
            "spec, work, kept = map(pathlib.Path, sys.argv[1:])\n"
            'seed = json.loads(spec.read_text())["seed"]\n'
            "home = pathlib.Path(__file__).parent\n"
            'made = home / f"{seed}.made"\n'
            "def note(text):\n"
            '    with (home / "notes").open("a") as file: print(text, file=file)\n' + program
        )
        monkeypatch.setattr(schedule, "COMMAND", (sys.executable, str(file)))
        told = []
        outcomes, failures = schedule.run_all(
            cells,
            tmp_path / "out",
            at_once=at_once,
            told=lambda training, doing: told.append((training.seed, doing)),
        )
        return outcomes, failures, told

    return train


def test_outcomes_are_known_by_the_name_of_their_training(train, made_up):
    outcomes, failures, told = train(DO, seeds=(0, 1))
    assert failures == []
    assert {name: found.cell.seed for name, found in outcomes.items()} == {
        made_up.cell(seed=seed).name: seed for seed in (0, 1)
    }
    assert told == [(0, STARTS), (0, DONE), (1, STARTS), (1, DONE)]


def test_its_process_is_told_what_to_train_and_where(train, made_up, tmp_path):
    program = 'work.mkdir(); shutil.copyfile(spec, work / "spec.json")\n'
    train(program + DO)
    name = made_up.cell().name
    spec = json.loads((tmp_path / "out/runs" / name / "spec.json").read_text())
    assert cell.Cell.from_json(spec) == made_up.cell()


def test_what_is_done_is_not_done_again(train):
    train(DO, seeds=(0,))
    outcomes, _, told = train(DO, seeds=(0, 1))
    assert [found.cell.seed for found in outcomes.values()] == [0, 1]
    assert told == [(0, KEPT), (1, STARTS), (1, DONE)]


def test_of_another_comparison_nothing_is_taken_and_nothing_started(train, tmp_path):
    train(DO, seeds=(1,))
    path = next((tmp_path / "out/results").iterdir())
    values = json.loads(path.read_text())
    values["cell"]["setup"]["rounds"] = 99
    path.write_text(json.dumps(values))
    with pytest.raises(ComparisonError, match="made with other settings"):
        train(DO, seeds=(0, 1))
    assert (tmp_path / "notes").read_text().split() == ["done"]


def test_a_failure_has_its_reason_and_its_log_and_no_outcome(train, made_up, tmp_path):
    program = 'if seed == 0: print("failed: no disk"); print("why", file=sys.stderr); sys.exit(1)\n'
    outcomes, [failure], told = train(program + DO, seeds=(0, 1))
    assert (failure.training, failure.reason) == (made_up.cell(seed=0), "no disk")
    assert failure.log == tmp_path / "out/runs" / f"{made_up.cell(seed=0).name}.log"
    assert failure.log.read_text() == "why\n"
    assert [found.cell.seed for found in outcomes.values()] == [1]
    assert told == [(0, STARTS), (0, FAILS), (1, STARTS), (1, DONE)]


def test_a_training_that_crashes_after_its_outcome_has_none_yet(train):
    outcomes, [failure], _ = train(DO + "sys.exit(3)")
    assert (outcomes, failure.reason) == ({}, "its process ended with code 3")
    assert len(train(DO)[0]) == 1


def test_a_failure_is_trained_anew_the_next_time(train):
    train("sys.exit(1)")
    outcomes, failures, _ = train(DO)
    assert (len(outcomes), failures) == (1, [])


@pytest.mark.parametrize("at_once", [1, 2])
def test_so_many_run_at_once_and_no_more(train, tmp_path, at_once):
    program = f"""
note("start")
for _ in range(200):
    if (home / "notes").read_text().count("start") >= {at_once}: break
    time.sleep(0.05)
time.sleep(0.3)
"""
    train(program + DO, seeds=range(3), at_once=at_once)
    notes = (tmp_path / "notes").read_text().split()
    assert notes[: at_once + 1] == ["start"] * at_once + ["done"]


def test_a_training_is_made_by_the_module_for_one_cell():
    assert schedule.COMMAND == (sys.executable, "-m", cell.__name__)
