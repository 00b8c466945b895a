"""The options of `surgagg study`; what it does with them is in studies/."""

import shlex
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from cxr_studies.analysis import analysis, study_results
from cxr_studies.plan.plan import check
from cxr_studies.plan.row import Row
from cxr_studies.plan.study_file import Selection, path_of, read_study, shipped
from cxr_studies.report import study_report
from cxr_studies.runner import run_study as module
from typed import answer, typed


@pytest.fixture
def study(monkeypatch, tmp_path):
    """Type the command, on the phantom; what it says, and what is made."""

    def study(*options, failures=()):
        called = {}

        def run_studies(studies, data, folder, selection, **others):
            for each in studies:
                check(each, data, selection)
            called.update(studies=studies, data=data, folder=folder, selection=selection, **others)
            runs = {each.name: [] for each in studies}
            return SimpleNamespace(runs=runs, failures=failures, data_use={})

        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(module, "run_studies", run_studies)
        monkeypatch.setattr(study_results, "gather", lambda *_: SimpleNamespace(seeds=None))
        for shown in ("show", "show_claims"):
            monkeypatch.setattr(analysis, shown, lambda *_: None)

        def report(results, data, folder, had, command):
            called["command"] = command
            folder.mkdir(parents=True, exist_ok=True)
            return folder / "report.html"

        monkeypatch.setattr(study_report, "write", report)
        return typed("study", "run", *options, "--phantom"), SimpleNamespace(**called)

    return study


def test_the_help_names_the_shipped_studies():
    output = typed("study", "run", "--help").out
    assert all(name in output for name in shipped())


@pytest.mark.parametrize(("options", "selection", "at_once"), [
    ("clients", Selection(), None),
    ("clients shared-classes --scenarios 2,4 --methods vanilla --seeds 5 --at-once 2",
     Selection(("2", "4"), ("vanilla",), 5), 2),
    ("clients --quick", Selection(seeds=1, quick=True), None),
    ("clients --quick --seeds 2", Selection(seeds=2, quick=True), None),
    ("clients --quick --scenarios 2", Selection(("2",), seeds=1), None),
])  # fmt: skip
def test_a_whole_study_is_made_or_some_runs_of_several(study, options, selection, at_once):
    call, called = study(*options.split())
    assert call.code == 0, call.err
    named = [word for word in options.split() if word in ("clients", "shared-classes")]
    assert [each.name for each in called.studies] == named
    assert (called.data.name, called.folder) == ("phantom", Path("runs/studies"))
    assert called.selection == selection
    assert called.at_once == at_once
    assert "runs/studies/clients/report.html" in call.out
    assert called.command == f"surgagg study run {options} --phantom"


def test_a_report_of_something_else_is_announced_before_it_is_replaced(study, tmp_path):
    own, out = tmp_path / "clients.yaml", ("--out", tmp_path / "studies")
    shutil.copy(path_of("clients"), own)
    first, again, whole, other = (
        study(*options, *out)[0].out
        for options in (("clients", "--quick"), ("clients", "--quick"), ("clients",), (own,))
    )
    assert "replace" not in first + again
    assert f"{out[1]}/clients has a report of study {path_of('clients')}, " in whole
    assert ", the quick form; 1 seed; this one will replace it" in whole
    assert f"report of study {path_of('clients')}, " in other
    assert "all of it; this one will replace it" in other


def test_a_run_that_failed_is_named_and_exit_code_1(study):
    run = SimpleNamespace(name="2, vanilla-fedbn+, seed 0", row=Row("vanilla", "fedbn+"))
    failure = SimpleNamespace(run=run, reason="no disk.", log=Path("there/log.txt"))
    call, _ = study("clients", failures=[failure])
    assert call.code == 1
    assert "2, vanilla-fedbn+, seed 0: no disk. The log is there/log.txt" in call.out + call.err


@pytest.mark.parametrize(("words", "message"), [
    ("clinets --phantom", "nearest known: clients"),
    ("clients", "needs --data <data file> for real data, or --phantom"),
    ("clients --data my.yaml --phantom", "got both"),
    ("clients --out spaced\\ runs --phantom", "without spaces"),
])  # fmt: skip
def test_a_mistake_is_refused_before_anything_is_made(tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    assert message in answer("study", "run", *shlex.split(words), code=2)
    assert not list(tmp_path.iterdir())


def test_every_shipped_study_is_listed_and_where_the_files_are():
    lines = typed("study", "list").out.splitlines()
    assert all(any(name in line for line in lines) for name in shipped())
    folder = Path(lines[-1].removeprefix("files  "))
    assert read_study(folder / "clients.yaml") == read_study("clients")
