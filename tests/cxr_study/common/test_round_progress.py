from io import StringIO

import pytest
from rich.console import Console

from cxr_study.common.round_progress import RoundProgress, round_bars

BEST = {"value": 0.25}


@pytest.fixture
def shown():
    """Shows progress where nobody watches; what was printed."""

    def shown(total, *progress, made=0):
        console = Console(file=StringIO(), width=100)
        with round_bars(console) as bars:
            bar = RoundProgress(bars, "training", total, made)
            for now in progress:
                bar.show(*now)
        return console.file.getvalue().splitlines()

    return shown


def test_without_a_terminal_every_round_is_a_line(shown):
    lines = shown(2, (0, None, False), (1, None, False), (1, BEST, False), (2, BEST, True))
    assert lines == [
        "training: round 0/2",
        "training: round 1/2",
        "training: round 2/2, best validation BCE 0.2500, stopped early",
    ]


def test_rounds_made_before_are_not_told_again(shown):
    assert shown(9, (5, None, False), (6, None, False), made=5)[-1] == "training: round 6/9"
    assert shown(9, (4, None, False), made=5) == []


def test_a_run_without_rounds_shows_nothing(shown):
    assert shown(0, (0, None, False)) == []


def test_where_the_number_of_rounds_is_not_known_those_made_are_shown(shown):
    assert shown(0, (0, None, False), (1, None, False)) == ["training: round 1"]


def test_on_a_terminal_a_bar_is_drawn():
    console = Console(file=StringIO(), width=100, force_terminal=True)
    with round_bars(console) as bars:
        RoundProgress(bars, "training", 2).show(1, BEST, False)
    assert "round 1/2, best validation BCE 0.2500" in console.file.getvalue()
