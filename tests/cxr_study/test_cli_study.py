"""The options of `surgagg study`; what it does with them is in studies/."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from cxr_study import cli, cli_study
from cxr_study.rows import Row
from cxr_study.studies.plan import Selection, StudyError
from cxr_study.studies.report import write
from cxr_study.studies.study_file import StudyFileError, shipped


@pytest.fixture
def study(monkeypatch):
    """Call the command; what is made, and the result."""

    def study(*options, failures=()):
        called = {}

        def make(studies, data, folder, selection, **others):
            called.update(studies=studies, data=data, folder=folder, selection=selection, **others)
            return SimpleNamespace(runs={s.name: [] for s in studies}, failures=failures)

        monkeypatch.setattr(cli_study, "make", make)
        results = SimpleNamespace(seeds=None)
        monkeypatch.setattr(cli_study, "gather", lambda *_: results)
        monkeypatch.setattr(cli_study.summary, "show", lambda *_: None)
        monkeypatch.setattr(write, "write", lambda _, data, folder: folder / "report.html")
        result = CliRunner().invoke(cli.app, ["study", *options])
        return SimpleNamespace(**called), result

    return study


def test_by_default_the_whole_study_on_the_phantom(study):
    called, result = study("run", "clients")
    assert [each.name for each in called.studies] == ["clients"]
    assert (called.data.name, called.folder) == ("phantom", Path("runs/studies"))
    assert called.selection == Selection()
    assert result.exit_code == 0, result.output


def test_several_studies_and_some_of_their_settings_methods_and_seeds(study):
    called, _ = study(
        "run", "clients", "data-size", "--settings", "2, 4", "--methods", "vanilla", "--seeds", "5"
    )
    assert [each.name for each in called.studies] == ["clients", "data-size"]
    assert called.selection == Selection(("2", "4"), ("vanilla",), 5)


@pytest.mark.parametrize(("options", "seeds"), [((), 1), (("--seeds", "2"), 2)])
def test_the_quick_form_has_one_seed_unless_it_is_said(study, options, seeds):
    called, _ = study("run", "clients", "--quick", *options)
    assert called.selection == Selection(seeds=seeds, quick=True)


def test_where_the_figures_are_is_said(study):
    _, result = study("run", "clients", "--out", "there")
    assert "there/clients/report.html" in result.output


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


def test_every_shipped_study_is_listed():
    result = CliRunner().invoke(cli.app, ["study", "list"])
    assert all(name in result.output for name in shipped())
