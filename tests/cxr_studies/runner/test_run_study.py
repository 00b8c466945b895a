"""Which runs of studies are made, and how; real runs are in tests/simulator and tests/poc.

How runs go side by side is in `test_side_by_side`.
"""

import io
import subprocess
from types import SimpleNamespace

import pytest
from rich.console import Console

import study_runs
from cxr_studies.plan.run_folder import FOLDERS, RUNS, write_result
from cxr_studies.plan.study_file import Selection
from cxr_studies.runner import run_study as module
from cxr_studies.runner import side_by_side
from cxr_studies.runner.side_by_side import Failure
from cxr_study.common.errors import InputError


@pytest.fixture
def happened():
    """What has been done, in order."""
    return []


@pytest.fixture
def make(monkeypatch, tmp_path, happened):
    """Make studies of given runs, {study: runs}; those of seed 9 fail."""

    def make(studies, out="out", names=None, data=None):
        def step(owner, name, reported, result=lambda first: None):
            def called(*given):
                happened.append(reported(*given))
                return result(given[0])

            monkeypatch.setattr(owner, name, called)

        found = {"nih": "the data set"}
        monkeypatch.setattr(module.published_data, "data_use_of", "what {} is used as".format)

        def run_all(runs, folder, at_once, console):
            happened.append((folder, sorted(run.seed for run in runs), at_once))
            return [Failure(run, "no disk.", folder) for run in runs if run.seed == 9]

        step(module.plan, "check", lambda study, *_: study.name, lambda study: (study.name, "nih"))
        read = lambda data, needed, _: f"read {', '.join(needed)}"  # noqa: E731
        step(module, "data_sets", read, lambda _: found)
        step(module.plan, "runs", lambda study, *_: study.name, lambda study: studies[study.name])
        step(module, "decode", lambda found, runs, folder, size: f"decode {size}")
        monkeypatch.setattr(side_by_side, "run_all", run_all)
        shown = io.StringIO()
        named = [SimpleNamespace(name=name) for name in names or studies]
        given = (named, data, tmp_path / out, Selection())
        result = module.run_studies(*given, at_once=3, console=Console(file=shown))
        return result, shown.getvalue()

    return make


def test_runs_of_one_key_are_made_once_after_all_studies_are_checked(make, happened, tmp_path):
    failing = study_runs.run(seed=9)
    studies = {
        "a": [study_runs.run(seed=0), study_runs.run(seed=0), study_runs.run(seed=1)],
        "b": [study_runs.run(seed=1), failing],
    }
    (tmp_path / "out" / RUNS / failing.key).mkdir(parents=True)
    write_result(study_runs.RESULT, tmp_path / "out" / RUNS / failing.key)
    result, shown = make(studies)
    runs = (tmp_path / "out/runs", [0, 1, 9], 3)
    assert happened == ["a", "b", "read a, nih, b", "a", "b", "decode 32", runs]
    assert result.runs == studies
    assert result.data_use == {"nih": "what the data set is used as"}
    assert [failure.run for failure in result.failures] == [failing]
    assert shown == "3 runs: 1 made before, 2 begin now.\n"


def test_a_note_names_pooled_data_that_are_trained_without_settings_for_one_site(make):
    data = SimpleNamespace(path="my.yaml", per_site={"nih": {"epochs": 2}})
    pooled = [study_runs.run("complete"), study_runs.run("centralised"), study_runs.run()]
    reported = "note: centralised, complete: all images in one place, without 'per_site' of my"
    assert reported + ".yaml.\n" in make({"a": pooled}, data=data)[1]
    for runs, given in ((pooled, SimpleNamespace(per_site={})), (pooled[2:], data)):
        assert "note" not in make({"a": runs}, data=given)[1]


@pytest.mark.parametrize(("how", "message"), [
    ({"names": ["clients", "clients"]}, "two are called 'clients'"),
    *(({"names": [name]}, f"another name than '{name}'") for name in FOLDERS),
    ({"out": "file"}, "need a folder; .*/file is a file"),
    ({"out": "file/below"}, "need a folder; .*/file is a file"),
    ({"out": "my out"}, "without spaces in its path"),
])  # fmt: skip
def test_unusable_names_and_folders_are_refused_beforehand(make, tmp_path, happened, how, message):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=message):
        make({"clients": []}, **how)
    assert happened == []


def test_why_a_process_failed_is_one_line_and_exit_code_1(tmp_path):
    pipe, command = subprocess.PIPE, [*side_by_side.COMMAND, tmp_path]
    # It ends when its standard input does.
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        output, trace = process.stdout.read(), process.stderr.read()
    assert (process.returncode, trace) == (1, "")
    assert output.startswith("failed: ") and str(tmp_path / "run.json") in output
