import re
from io import StringIO

import pytest
from rich.console import Console

from cxr_study.common.progress import RoundProgress, Steps, bar, round_bars

BEST = {"value": 0.25}


@pytest.fixture
def console():
    return Console(file=StringIO(), width=100)


class TestBar:
    @pytest.mark.parametrize(("done", "of", "printed"), [
        (range(101), 100, (25, 50, 75, 100)), ((9, 10), 10, (9, 10)), ((0,), 0, ()),
    ])  # fmt: skip
    def test_without_a_terminal_there_is_a_line_per_quarter(self, capsys, done, of, printed):
        with bar("decoding") as report:
            for each in done:
                report(each, of)
        out, err = capsys.readouterr()
        assert (out, err.splitlines()) == ("", [f"decoding: {each}/{of}" for each in printed])

    def test_on_a_terminal_there_is_a_bar(self, capsys, monkeypatch):
        monkeypatch.setenv("FORCE_COLOR", "1")
        with bar("decoding") as report:
            report(2, 4)
        output = capsys.readouterr().err
        assert "decoding" in output and "2/4" in output and "━" in output


class TestRoundProgress:
    @pytest.mark.parametrize(("total", "made", "progress", "printed"), [
        (2, 0, [(0, None, False), (1, None, False), (1, BEST, False), (2, BEST, True)],
         ["0/2", "1/2", "2/2, best validation BCE 0.2500, stopped early"]),
        (9, 5, [(4, None, False)], []),  # rounds made before are not printed again
        (9, 5, [(5, None, False), (6, None, False)], ["5/9", "6/9"]),
        (0, 0, [(0, None, False), (1, None, False)], ["1"]),  # of a number not known
    ])  # fmt: skip
    def test_without_a_terminal_a_round_is_a_line(self, console, total, made, progress, printed):
        with round_bars(console) as bars:
            shown = RoundProgress(bars, "training", total, made)
            for now in progress:
                shown.show(*now)
        assert console.file.getvalue().splitlines() == [f"training: round {now}" for now in printed]

    def test_on_a_terminal_a_bar_is_drawn(self):
        console = Console(file=StringIO(), width=100, force_terminal=True)
        with round_bars(console) as bars:
            RoundProgress(bars, "training", 2).show(1, BEST, False)
        assert "round 1/2, best validation BCE 0.2500" in console.file.getvalue()


def test_a_step_is_printed_with_its_seconds_when_it_is_over_unless_it_fails(console):
    with pytest.raises(OSError), Steps(console).step("start"):
        raise OSError
    with Steps(console).step("start", "two sites") as details:
        assert console.file.getvalue() == ""
        details.append("port 1")
    (line,) = console.file.getvalue().splitlines()
    assert re.fullmatch(r"start     two sites, port 1 +\d+\.\d s", line)
