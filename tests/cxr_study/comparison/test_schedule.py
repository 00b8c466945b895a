import json
import sys
import textwrap
import time

import psutil
import pytest

from cxr_study.comparison import outcome, schedule
from cxr_study.comparison.outcome import ComparisonError

DONE = 'shutil.copyfile(made, kept); note("done")\n'


@pytest.fixture
def train(made_up, tmp_path, monkeypatch):
    """Run trainings with a program in the place of the real one."""

    def train(program, seeds=(0,), at_once=1, **arguments):
        cells = [made_up.cell(seed=seed) for seed in seeds]
        for cell in cells:
            outcome.write(made_up.outcome(cell), tmp_path / f"{cell.seed}.made")
        file = tmp_path / "train.py"
        file.write_text(
            "import json, pathlib, shutil, sys, time\n"
            "spec, work, kept = map(pathlib.Path, sys.argv[1:])\n"
            'seed = json.loads(spec.read_text())["seed"]\n'
            f'folder = pathlib.Path("{tmp_path}")\n'
            'made = folder / f"{seed}.made"\n'
            "def note(text):\n"
            '    with (folder / "notes").open("a") as file: print(seed, text, file=file)\n'
            + textwrap.dedent(program)
        )
        monkeypatch.setattr(schedule, "COMMAND", (sys.executable, str(file)))
        return schedule.run(cells, tmp_path / "out", at_once=at_once, **arguments)

    return train


def notes(tmp_path):
    path = tmp_path / "notes"
    return path.read_text().splitlines() if path.exists() else []


def children(file):
    return [p for p in psutil.Process().children(recursive=True) if str(file) in p.cmdline()]


class TestRun:
    def test_outcomes_are_known_by_the_name_of_their_training(self, train, made_up, tmp_path):
        outcomes, failures = train(DONE, seeds=(0, 1))
        assert failures == []
        assert {name: found.cell.seed for name, found in outcomes.items()} == {
            made_up.cell(seed=seed).name: seed for seed in (0, 1)
        }

    def test_what_is_done_is_not_done_again(self, train, tmp_path):
        train(DONE, seeds=(0,))
        told = []
        outcomes, _ = train(DONE, seeds=(0, 1), told=lambda cell, what: told.append(what))
        assert notes(tmp_path) == ["0 done", "1 done"] and len(outcomes) == 2
        assert told == [schedule.KEPT, schedule.STARTS, schedule.DONE]

    def test_of_another_comparison_nothing_is_taken_and_nothing_started(self, train, tmp_path):
        train(DONE, seeds=(0,))
        path = next((tmp_path / "out/results").iterdir())
        values = json.loads(path.read_text())
        values["cell"]["setup"]["rounds"] = 99
        path.write_text(json.dumps(values))
        with pytest.raises(ComparisonError, match="made with other settings"):
            train(DONE, seeds=(0, 1))
        assert notes(tmp_path) == ["0 done"]

    def test_a_failure_has_its_reason_and_stops_nobody_else(self, train, tmp_path):
        outcomes, failures = train(
            'if seed == 0: print("failed: no disk"); sys.exit(1)\n' + DONE, seeds=(0, 1)
        )
        assert [(f.cell.seed, f.reason) for f in failures] == [(0, "no disk")]
        assert [found.cell.seed for found in outcomes.values()] == [1]

    def test_a_failure_is_trained_anew_the_next_time(self, train):
        train("sys.exit(1)")
        outcomes, failures = train(DONE)
        assert (len(outcomes), failures) == (1, [])

    def test_a_crash_is_a_failure_with_its_log(self, train):
        _, (failure,) = train("raise RuntimeError('kaboom')")
        assert failure.reason == "its process ended with code 1"
        assert "kaboom" in failure.log.read_text()

    def test_a_training_that_leaves_nothing_is_a_failure(self, train):
        _, (failure,) = train("pass")
        assert failure.reason == "it left no outcome"

    def test_how_far_it_is_can_be_followed(self, train):
        told = []
        program = 'print("noise"); print("round 1", flush=True); print("round 2")\n'
        train(program + DONE, told=lambda cell, what: told.append(what))
        assert told == [schedule.STARTS, "round 1", "round 2", schedule.DONE]

    @pytest.mark.parametrize("at_once", [1, 3])
    def test_so_many_run_at_once_and_no_more(self, train, tmp_path, at_once):
        train('note("start"); time.sleep(0.5)\n' + DONE, seeds=range(3), at_once=at_once)
        running = most = 0
        for line in notes(tmp_path):
            running += 1 if line.endswith("start") else -1
            most = max(most, running)
        assert most == at_once

    def test_an_interrupt_ends_what_runs_and_starts_no_more(self, train, tmp_path, monkeypatch):
        def interrupted(pending):
            while len(notes(tmp_path)) < 2:
                time.sleep(0.05)
            assert len(children(tmp_path / "train.py")) == 2
            raise KeyboardInterrupt

        monkeypatch.setattr(schedule, "as_completed", interrupted)
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            train('note("start"); time.sleep(60)', seeds=range(4), at_once=2)
        assert time.monotonic() - began < 20
        assert notes(tmp_path) in (["0 start", "1 start"], ["1 start", "0 start"])
        assert children(tmp_path / "train.py") == []

    def test_a_terminals_interrupt_reaches_a_training_as_one_request_to_end(self, train, tmp_path):
        """A second signal would cut short how a training ends its simulator."""
        train("import os; note(os.getpgid(0) == os.getpid())\n" + DONE)
        assert notes(tmp_path) == ["0 True", "0 done"]

    def test_the_code_that_runs_is_this_one(self, train):
        _, (failure,) = train("import cxr_study; print('failed:', cxr_study.__file__); sys.exit(1)")
        import cxr_study

        assert failure.reason == cxr_study.__file__
