import dataclasses

import pytest

from cxr_study.comparison import outcome as outcomes
from cxr_study.comparison.grid import ENDINGS, ComparisonError


def test_what_is_written_is_read_again(made_up, tmp_path):
    outcome = made_up.outcome(made_up.cell(), own_models=True)
    outcomes.write(outcome, tmp_path / "one.json")
    assert outcomes.read(tmp_path / "one.json", outcome.cell) == outcome


def test_before_a_training_is_done_there_is_no_outcome(made_up, tmp_path):
    assert outcomes.read(tmp_path / "one.json", made_up.cell()) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda cell: dataclasses.replace(cell, seed=1),
        lambda cell: dataclasses.replace(cell, site_files=cell.site_files / "other"),
        lambda cell: dataclasses.replace(cell, setup=dataclasses.replace(cell.setup, rounds=3)),
        lambda cell: dataclasses.replace(
            cell, setup=dataclasses.replace(cell.setup, settings={"epochs": 2})
        ),
    ],
)
def test_an_outcome_of_another_training_is_never_taken_for_this_ones(made_up, tmp_path, change):
    cell = made_up.cell()
    outcomes.write(made_up.outcome(cell), tmp_path / "one.json")
    with pytest.raises(ComparisonError, match=r"one\.json was made with other settings or data"):
        outcomes.read(tmp_path / "one.json", change(cell))


def test_figures_are_those_of_the_ending(made_up):
    outcome = made_up.outcome(made_up.cell(), other=0.5)
    better = dataclasses.replace(outcome.endings[ENDINGS[1]], scores=made_up.scores(other=0.9))
    outcome = dataclasses.replace(outcome, endings={**outcome.endings, ENDINGS[1]: better})
    assert outcome.auroc(ENDINGS[0], "unique classes, other site") == 0.5
    assert outcome.auroc(ENDINGS[1], "unique classes, other site") == 0.9
