import io
from dataclasses import replace

from rich.console import Console

from cxr_study.reports.run.console import print_summary


def printed(summary, width=100, **changes):
    """What is printed of a run with changes."""
    text = io.StringIO()
    print_summary(replace(summary, **changes), Console(file=text, width=width))
    return text.getvalue()


def test_has_the_key_figures_and_limits(summary):
    text = printed(summary)
    assert "surgical, rounds 2 (best: 1), mean validation BCE 0.250, 2 min 03 s." in text
    for words in (
        "Two hospitals", "0.875", "0.750", "(0.625\u20130.812)", "over 1 of 2", "Phantom data.",
        "not defined", "Research only, not for diagnosis.", "site alone", "0.725",
        "as published", "nih, on the classes that it labels itself: better by",
    ):  # fmt: skip
        assert words in text
    means = tuple(row for row in summary.means if row.model == "global")
    other = printed(summary, stopped_early=True, means=means)
    assert "surgical, rounds 2 (stopped early; best: 1), mean" in other
    assert "site alone" not in other and "federated" not in other  # it is the only one
    narrow = printed(summary, width=80)
    assert max(map(len, narrow.splitlines())) <= 80
    assert narrow.count("(0.750\u20130.938)") == 2  # no number is cut


def test_names_are_not_markup_and_degenerate_runs_print_too(degenerate):
    assert "[red]Two[/red] [/]" in printed(degenerate, title="[red]Two[/red] [/]")
