"""What a run prints at its end."""

import dataclasses
import io

from rich.console import Console

from cxr_study.reports.run.console import print_summary


def printed(summary, width=100):
    """What is printed, without the line breaks of the terminal."""
    text = io.StringIO()
    print_summary(summary, Console(file=text, width=width))
    return text.getvalue()


def test_holds_the_key_figures(summary):
    text = printed(summary)
    assert "Two hospitals" in text
    for figure in ("0.875", "0.750", "(0.625\u20130.812)", "over 1 of 2"):
        assert figure in text
    assert "surgical, best round 1, mean validation BCE 0.250, 2 min 03 s." in text
    assert "Phantom data." in text
    assert "not defined" in text
    assert "Research only, not for diagnosis." in text


def test_fits_a_narrow_terminal_without_cutting_a_number(summary):
    text = printed(summary, width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("(0.750\u20130.938)") == 2


def test_names_are_not_markup(summary):
    strange = dataclasses.replace(summary, title="[red]Two[/red] [/]")
    assert "[red]Two[/red] [/]" in printed(strange)


def test_degenerate_runs_print_too(degenerate):
    assert "Two hospitals" in printed(degenerate)


def test_local_models_have_a_column_only_where_they_were_trained(summary):
    assert "local model" in printed(summary)
    alone = dataclasses.replace(
        summary,
        test=tuple(row for row in summary.test if row.model == "global"),
        means=tuple(row for row in summary.means if row.model == "global"),
    )
    assert "local model" not in printed(alone)


def test_a_run_that_stopped_early_says_so(summary):
    assert "stopped early" not in printed(summary)
    early = dataclasses.replace(summary, stopped_early=True)
    assert "surgical, stopped early, best round 1, mean" in printed(early)
