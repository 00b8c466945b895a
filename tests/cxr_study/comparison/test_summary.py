import dataclasses

import pytest

from cxr_study.comparison.grid import ENDINGS
from cxr_study.comparison.measures import MEASURES
from cxr_study.comparison.summary import lines, verdicts
from cxr_study.jobs.methods import Row

SHARED, OWN, OTHER, ALL = MEASURES
ROW = Row("surgical", "fedbn+")


def test_a_line_is_the_mean_over_the_seeds_of_its_own_row(made_up):
    outcomes = [made_up.outcome(made_up.cell(seed=s), other=v) for s, v in ((0, 0.5), (1, 0.7))]
    outcomes.append(made_up.outcome(made_up.cell("vanilla", "fedbn+"), other=0.1))
    (line,) = lines([ROW], outcomes)
    figure = line.figures[ENDINGS[0], OTHER]
    assert (line.row, line.trained, figure.seeds) == (ROW, 2, 2)
    assert figure.mean == pytest.approx(0.6)
    assert figure.low < 0.5 and figure.high > 0.7


def test_the_endings_have_figures_of_their_own(made_up):
    outcome = made_up.outcome(made_up.cell(), shared=0.5)
    late = dataclasses.replace(outcome.endings[ENDINGS[1]], scores=made_up.scores(shared=0.9))
    outcome = dataclasses.replace(outcome, endings={**outcome.endings, ENDINGS[1]: late})
    (line,) = lines([ROW], [outcome])
    assert [line.figures[ending, SHARED].mean for ending in ENDINGS] == [0.5, 0.9]


def test_what_own_models_lack_is_not_defined(made_up):
    (line,) = lines([ROW], [made_up.outcome(made_up.cell(), own_models=True)])
    defined = [measure for measure in MEASURES if line.figures[ENDINGS[0], measure]]
    assert defined == [SHARED, OWN]


def test_rounds_are_those_of_early_stopping_in_the_order_of_seeds(made_up):
    outcomes = []
    for seed, (best, made) in ((1, (9, 12)), (0, (5, 8))):
        outcome = made_up.outcome(made_up.cell(seed=seed))
        late = dataclasses.replace(outcome.endings[ENDINGS[1]], round=best, rounds=made)
        outcomes.append(dataclasses.replace(outcome, endings={**outcome.endings, ENDINGS[1]: late}))
    (line,) = lines([ROW], outcomes)
    assert line.stopped == ((5, 8), (9, 12))


def test_a_row_without_outcomes_has_a_line_without_figures():
    (line,) = lines([ROW], [])
    assert (line.trained, line.stopped, set(line.figures.values())) == (0, (), {None})


def test_every_claim_has_a_verdict_by_row_and_seed(made_up):
    outcomes = [
        made_up.outcome(made_up.cell(method, "fedbn+", seed), other=value)
        for method, value in (("surgical", 0.8), ("vanilla", 0.6))
        for seed in (0, 1)
    ]
    collapse, *_ = verdicts(outcomes)
    decided = [f for f in collapse.findings if f.verdict == "reproduced"]
    assert {(f.better.method, f.worse.method, f.measure) for f in decided} == {
        ("surgical", "vanilla", OTHER)
    }
