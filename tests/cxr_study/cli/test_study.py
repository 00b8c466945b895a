"""The options of `surgagg study`; what it does with them is in studies/."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from cxr_study.cli import main as cli
from cxr_study.jobs.methods import Row
from cxr_study.reports.study import write
from cxr_study.studies.analysis import study_results, summary
from cxr_study.studies.plan.plan import check
from cxr_study.studies.plan.selection import Selection, StudyError
from cxr_study.studies.plan.study_file import StudyFileError, path_of, read_study, shipped
from cxr_study.studies.runner import run_study as module
from cxr_study.studies.runner.machine_capacity import Machine
from typed import typed


@pytest.fixture
def out(tmp_path):
    """Folder for all runs."""
    return tmp_path / "studies"


@pytest.fixture
def study(monkeypatch, tmp_path):
    """Call the command; what is made, and the result."""

    def study(*options, failures=()):
        called = {}

        def make(studies, data, folder, selection, **others):
            for each in studies:
                check(each, data, selection)
            called.update(studies=studies, data=data, folder=folder, selection=selection, **others)
            return SimpleNamespace(runs={s.name: [] for s in studies}, failures=failures)

        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(module, "make", make)
        results = SimpleNamespace(seeds=None)
        monkeypatch.setattr(study_results, "gather", lambda *_: results)
        for shown in ("show", "show_claims"):
            monkeypatch.setattr(summary, shown, lambda *_: None)

        def report(results, data, folder):
            folder.mkdir(parents=True, exist_ok=True)
            return folder / "report.html"

        monkeypatch.setattr(write, "write", report)
        result = CliRunner().invoke(cli.app, ["study", *options])
        return SimpleNamespace(**called), result

    return study


def test_by_default_the_whole_study_on_the_phantom(study):
    called, result = study("run", "clients")
    assert [each.name for each in called.studies] == ["clients"]
    assert (called.data.name, called.folder) == ("phantom", Path("runs/studies"))
    assert called.selection == Selection()
    assert result.exit_code == 0, result.output


def test_several_studies_and_some_of_their_scenarios_methods_and_seeds(study):
    called, _ = study(
        "run", "clients", "shared-classes", "--scenarios", "2, 4", "--methods", "vanilla",
        "--seeds", "5",
    )  # fmt: skip
    assert [each.name for each in called.studies] == ["clients", "shared-classes"]
    assert called.selection == Selection(("2", "4"), ("vanilla",), 5)


def test_scenarios_that_are_said_win_over_those_of_the_quick_form(study):
    called, _ = study("run", "clients", "--quick", "--scenarios", "3")
    assert called.selection == Selection(("3",), seeds=1)


@pytest.mark.parametrize(("options", "at_once"), [((), None), (("--at-once", "2"), 2)])
def test_as_many_run_side_by_side_as_the_machine_allows_or_fewer(study, options, at_once):
    called, _ = study("run", "clients", *options)
    assert called.machine == Machine(called.machine.cores, called.machine.memory, at_once)


@pytest.mark.parametrize(("options", "seeds"), [((), 1), (("--seeds", "2"), 2)])
def test_the_quick_form_has_one_seed_unless_it_is_said(study, options, seeds):
    called, _ = study("run", "clients", "--quick", *options)
    assert called.selection == Selection(seeds=seeds, quick=True)


def test_where_the_figures_are_is_said(study, out):
    _, result = study("run", "clients", "--out", str(out))
    assert f"{out}/clients/report.html" in result.output


def test_a_report_of_something_else_is_told_before_it_is_replaced(study, out):
    own = out.parent / "clients.yaml"
    shutil.copy(path_of("clients"), own)
    _, first = study("run", "clients", "--out", str(out), "--quick")
    _, again = study("run", "clients", "--out", str(out), "--quick")
    _, whole = study("run", "clients", "--out", str(out))
    _, other = study("run", str(own), "--out", str(out))
    assert "replace" not in first.output + again.output
    assert f"{out}/clients has a report of study {path_of('clients')}, " in whole.output
    assert ", the quick form; 1 seed; this one will replace it" in whole.output
    assert f"report of study {path_of('clients')}, " in other.output
    assert "all of it; this one will replace it" in other.output


def test_a_run_that_failed_is_named_and_exit_code_1(study):
    run = SimpleNamespace(name="2, vanilla-fedbn+, seed 0", row=Row("vanilla", "fedbn+"))
    failure = SimpleNamespace(training=run, reason="no disk.", log=Path("there/log.txt"))
    _, result = study("run", "clients", failures=[failure])
    assert result.exit_code == 1
    assert "2, vanilla-fedbn+, seed 0: no disk. The log is there/log.txt" in result.output


def test_a_study_that_there_is_not_is_refused(study):
    _, result = study("run", "clinets")
    assert isinstance(result.exception, StudyFileError)
    assert "nearest known: clients" in str(result.exception)


def test_a_folder_with_a_space_is_refused_before_anything_is_made(tmp_path):
    result = CliRunner().invoke(
        cli.app, ["study", "run", "clients", "--out", str(tmp_path / "my runs")]
    )
    assert isinstance(result.exception, StudyError) and "without spaces" in str(result.exception)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("options", [(), ("--seeds", "3", "--site-files", "sites"), ("--help",)])
def test_compare_says_that_it_is_a_study_now(options):
    call = typed("compare", *options)
    assert call.code == 2
    assert call.err.startswith("surgagg: surgagg compare is now: surgagg study run methods")


def test_every_shipped_study_is_listed():
    result = CliRunner().invoke(cli.app, ["study", "list"])
    assert all(name in result.output for name in shipped())


def test_where_the_files_of_the_studies_are_is_said():
    result = CliRunner().invoke(cli.app, ["study", "list"])
    folder = Path(result.output.splitlines()[-1].removeprefix("files  "))
    assert read_study(folder / "clients.yaml") == read_study("clients")
