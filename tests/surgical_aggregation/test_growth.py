"""A round's work grows with the number of classes as the number does, not as its square."""

import sys
from collections import Counter

import numpy as np
import pytest

from flare import column, context, global_model, result
from surgical_aggregation.server.access.class_filters import CheckResult, SelectHead
from surgical_aggregation.server.models.aggregator import SurgicalAggregator
from surgical_aggregation.server.models.global_model import GlobalModel, MergeIntoGlobalModel
from surgical_aggregation.wire import variables as wire

FEW, MANY = 40, 320
BODY = {f"layer{i}/kernel": np.ones(2, np.float32) for i in range(3)}
SITES = "abcd"


class Name(str):
    """A class name that counts its comparisons."""

    __hash__ = str.__hash__
    compared = 0

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)


def names(count):
    return [Name(f"class {i}") for i in range(count)]


def a_round(count, **arguments):
    """A round of four sites with the same classes, from the sent model to the new one."""
    table = {site: names(count) for site in SITES}
    labelled = dict.fromkeys(names(count), column(1))
    model = global_model(BODY, labelled)
    generator = MergeIntoGlobalModel("fedavgm")
    aggregator = SurgicalAggregator("fedavg", limits={"site_classes": count}, **arguments)
    for site in SITES:
        fl_ctx = context(site, names(count), model=model)
        task = generator.learnable_to_shareable(model.to_learnable(), fl_ctx)
        assert SelectHead(table).process(task, fl_ctx) is not None
        positives = {name: 1 + i for i, name in enumerate(names(count))}
        sent = CheckResult(table).process(result(BODY, labelled, positives=positives), fl_ctx)
        assert aggregator.accept(sent, fl_ctx)
    end = context(model=model)
    merged = generator.shareable_to_learnable(aggregator.aggregate(end), end)
    assert len(GlobalModel.from_learnable(merged).columns) == count


def a_head(count):
    """What a site does with its own columns."""
    dense = {"head/kernel": np.ones((2, count)), "head/bias": np.ones(count)}
    assert len(wire.split(wire.label(dense, names(count)))[1]) == count


def work(function, count):
    """How often names are compared, and functions called, Python's own included."""
    calls = Counter()
    Name.compared = 0
    sys.setprofile(lambda frame, event, arg: calls.update([event]))
    try:
        function(count)
    finally:
        sys.setprofile(None)
    return Name.compared, calls["call"] + calls["c_call"]


@pytest.mark.parametrize("function", [
    a_round, lambda count: a_round(count, head_weighting="positives"), a_head,
], ids=["a round", "a round weighted by positives", "a head"])  # fmt: skip
def test_eight_times_the_classes_are_eight_times_the_work(function, monkeypatch):
    plain = wire.class_of
    monkeypatch.setattr(wire, "class_of", lambda name: (labelled := plain(name)) and Name(labelled))
    function(FEW)  # what is done once only
    few, many = work(function, FEW), work(function, MANY)
    for less, more in zip(few, many, strict=True):
        assert 0 < more <= 1.1 * MANY / FEW * less
