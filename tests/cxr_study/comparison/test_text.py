import io
from dataclasses import replace

import pytest
from rich.console import Console

from cxr_study.comparison import text
from cxr_study.comparison.claims import Finding
from cxr_study.comparison.grid import ENDINGS
from cxr_study.evaluation.seed_intervals import Interval
from cxr_study.jobs.methods import Row


@pytest.mark.parametrize(
    ("value", "figure", "difference"),
    [
        (
            Interval(0.8124, 0.7951, 0.8296, 3),
            "0.812 (0.795\N{EN DASH}0.830)",
            "+0.812 (+0.795 to +0.830)",
        ),
        (
            Interval(0.02, 0.01, 0.03, 3),
            "0.020 (0.010\N{EN DASH}0.030)",
            "+0.020 (+0.010 to +0.030)",
        ),
        (Interval(0.5, None, None, 1), "0.500", "+0.500"),
        (None, "not defined", "not defined"),
    ],
)
def test_figures_and_differences(value, figure, difference):
    assert text.figure(value) == figure
    assert text.difference(value) == difference


@pytest.mark.parametrize(
    ("better", "worse", "said"),
    [
        (("surgical", "fedavg"), ("vanilla", "fedavg"), "Surgical aggregation against Vanilla FL"),
        (("surgical", "fedbn+"), ("surgical", "fedavg"), "Surgical aggregation: fedbn+ against f"),
        (
            ("surgical", "fedavg"),
            ("centralised", "fedavg"),
            "Surgical aggregation (fedavg) against Centralised (batch norm trained)",
        ),
    ],
)
def test_a_pair_says_what_differs(better, worse, said):
    finding = Finding(Row(*better), Row(*worse), "", "", None, "")
    assert text.pair(finding).startswith(said)


class TestMarkdown:
    def test_every_row_has_a_line_in_both_tables(self, summary):
        found, _ = summary
        page = text.markdown(found).replace("\N{EN DASH}", "-")
        assert page.count("| Surgical aggregation | fedbn+ |") == len(ENDINGS)
        wanted = "0.800 (0.800-0.800) | 0.700 (0.700-0.700) | 0.750 (0.750-0.750)"
        assert f"| Surgical aggregation | fedbn+ | {wanted} |" in page
        own = "0.800 (0.800-0.800) | 0.700 (0.700-0.700) | not defined | not defined |"
        assert f"| Surgical aggregation | fedbn | {own}" in page
        assert "2/4, 2/4, 2/4" in page

    def test_a_row_that_failed_says_so_and_why(self, summary):
        page = text.markdown(summary[0])
        assert "| FL with partial loss | fedbn+ | failed | failed | failed | failed |" in page
        assert "- partial_loss-fedbn+-seed0 failed: no <disk>. See runs/x.log" in page

    def test_claims_have_their_differences_and_verdicts(self, summary):
        page = text.markdown(summary[0])
        said = "unique classes, other site | equal rounds | +0.200 (+0.200 to +0.200) | reproduced"
        assert f"| Surgical aggregation against Vanilla FL (fedbn+) | {said} |" in page
        assert "reproduced in 4 of 24 comparisons, not decided in 20" in page
        assert "bit for bit**: reproduced." in page

    def test_every_line_of_a_table_has_as_many_cells(self, summary):
        for block in text.markdown(summary[0]).split("\n\n"):
            rows = [line for line in block.splitlines() if line.startswith("|")]
            assert len({line.count("|") for line in rows}) <= 1

    def test_it_says_how_many_seeds_stand_behind_it(self, summary):
        assert "test splits; of seed 0 alone." in text.note(replace(summary[0], seeds=1))
        assert "own" not in text.note(replace(summary[0], phantom=False)).split(". ")[0]
        assert "over seeds 0 to 2 (each with patients of its own)" in text.note(summary[0])


def test_the_console_shows_tables_claims_and_failures(summary):
    shown = io.StringIO()
    text.print_summary(summary[0], Console(file=shown, width=150))
    printed = " ".join(shown.getvalue().split())
    for part in (
        "At equal rounds: the model after 2",
        "at least 2 and at most 4 rounds",
        "0.750\N{EN DASH}0.750",
        "not defined",
        "reproduced in 4 of 24 comparisons",
        "no <disk>",
        "Research only",
    ):
        assert part in printed
