"""The options of `surgagg compare`; what it does with them is in comparison/."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from cxr_study.cli import compare as cli_compare
from cxr_study.cli import main as cli
from cxr_study.comparison import run as runner
from cxr_study.comparison import text
from cxr_study.comparison.grid import HEAD_WEIGHTINGS, ROWS, ComparisonError
from surgical_aggregation.site.training import tensorflow_setup


@pytest.fixture
def compare(monkeypatch):
    """Call the command; what is compared with, and the result."""

    def compare(*options, failures=()):
        called = {}

        def run(rows, seeds, setup, out, **others):
            called.update(rows=rows, seeds=seeds, setup=setup, out=out, **others)
            return SimpleNamespace(failures=failures), out / "comparison.html"

        monkeypatch.setattr(runner, "compare", run)
        monkeypatch.setattr(text, "print_summary", lambda found, console: None)
        monkeypatch.setattr(tensorflow_setup, "cores", lambda: 4)
        result = CliRunner().invoke(cli.app, ["compare", *options])
        return SimpleNamespace(**called), result

    return compare


def test_by_default_all_rows_with_three_seeds_on_the_phantom(compare):
    called, result = compare()
    assert (called.rows, called.seeds, called.site_files) == (ROWS, 3, None)
    setup = called.setup
    assert (setup.sites, setup.rounds, setup.most_rounds, setup.patience) == (
        ("nih", "chexpert"),
        12,
        24,
        4,
    )
    assert setup.settings == cli_compare.PHANTOM_SETTINGS
    assert result.exit_code == 0


def test_the_page_and_the_tables_are_named(compare):
    _, result = compare("--out", "there")
    assert result.output.split() == [
        "there/comparison.html",
        "there/table.md",
        "there/results.csv",
    ]


def test_a_training_that_failed_is_exit_code_1(compare):
    assert compare(failures={"vanilla": "no disk"})[1].exit_code == 1


def test_head_weightings_are_further_rows(compare):
    assert compare("--head-weightings")[0].rows == (*ROWS, *HEAD_WEIGHTINGS)


def test_settings_go_over_those_for_the_phantom_and_stand_alone_on_other_data(compare):
    called, _ = compare("--set", "epochs=2", "--set", "batch_size=8")
    assert called.setup.settings == {"epochs": 2, "batch_size": 8}
    called, _ = compare("--set", "epochs=2", "--site-files", "mine", "--sites", "a, b,c")
    assert (called.setup.settings, called.setup.sites) == ({"epochs": 2}, ("a", "b", "c"))
    assert called.site_files == Path("mine")


@pytest.mark.parametrize(("sites", "at_once"), [("a,b", 3), ("a,b,c,d", 2), ("a,b,c,d,e", 1)])
def test_as_many_side_by_side_as_cores_hold_and_one_more(compare, sites, at_once):
    assert compare("--sites", sites)[0].at_once == at_once
    assert compare("--sites", sites, "--at-once", "7")[0].at_once == 7


def test_fewer_than_none_side_by_side_is_refused(compare):
    _, result = compare("--at-once", "-1")
    assert result.exit_code == 2 and "--at-once" in result.output


def test_a_knob_of_one_site_is_refused(compare):
    _, result = compare("--set", "nih:epochs=2")
    assert isinstance(result.exception, ComparisonError)
    assert "the same knobs everywhere" in str(result.exception)
