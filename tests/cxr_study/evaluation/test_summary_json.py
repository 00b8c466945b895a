"""The JSON form of a run's summary."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cxr_study.evaluation.summary_json import Summary


def changed(summary, change):
    """The summary's JSON after `change` was made to the parsed value."""
    value = json.loads(summary.to_json())
    change(value)
    return json.dumps(value)


def test_round_trip_gives_an_equal_summary(summary, degenerate):
    for each in (summary, degenerate):
        assert Summary.from_json(each.to_json()) == each
    value = json.loads(summary.to_json())
    assert value["test"][2]["auroc"] is None
    assert value["rounds"][2]["sites"]["nih"]["train_seconds"] is None
    text = changed(summary, lambda v: v["rounds"][2]["sites"]["nih"].pop("train_seconds"))
    assert Summary.from_json(text) == summary


def test_numpy_numbers_are_written_as_plain_ones(summary):
    numpy = replace(summary, wall_seconds=np.float32(123), seed=np.int64(7))
    assert numpy.to_json() == summary.to_json()


@pytest.mark.parametrize(("change", "message"), [
    (lambda v: v.update(format=1), "summary.format: Input should be 2; got 1"),
    (lambda v: v.pop("best"), "summary.best: Field required"),
    (lambda v: v.update(colour="red"), "summary.colour: Unexpected keyword"),
    (lambda v: v.update(data="x-ray"), "summary.data: Input should be 'phantom', 'real' or 'els"),
    (lambda v: v.update(seed=True), "summary.seed: Input should be a valid integer; got T"),
    (lambda v: v["test"][1].update(auroc="high"), "summary.test[1].auroc: Input should be a valid"),
    (lambda v: v["test"][1].update(site="mars"), "test[1].site is 'mars'; the summary has"),
    (lambda v: v["test"][1].update(class_name="Gout"), "test[1].class_name is 'Gout'"),
    (lambda v: v["rounds"][1]["sites"].update(mars={"validation_bce": 1}), "rounds[1]"),
])  # fmt: skip
def test_a_wrong_value_is_named_by_its_path(summary, change, message):
    with pytest.raises(ValueError) as refused:
        Summary.from_json(changed(summary, change))
    assert message in str(refused.value)


def test_text_that_is_not_json_and_nan_are_refused(summary):
    with pytest.raises(ValueError, match="Invalid JSON"):
        Summary.from_json("{")
    with pytest.raises(ValueError, match="wall_seconds: Input should be a finite number"):
        replace(summary, wall_seconds=float("nan")).to_json()
