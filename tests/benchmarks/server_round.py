"""Time what the server does in a round, step by step, and FLARE's stock aggregator beside ours.

The steps: SelectHead for each site, CheckResult and accept of each result, one aggregate, one merge
into the global model, and both models on disk, for a better one was found; every site has every
class. With a small body what is left is the classes';
with DenseNet121's (604 arrays, 7.0 million numbers) the stock aggregator does the same work.
"""

import logging
from functools import partial
from statistics import median

import numpy as np
from measure import options, seconds
from nvflare.apis.dxo import DataKind
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import ReservedKey
from nvflare.app_common.aggregators.intime_accumulate_model_aggregator import (
    InTimeAccumulateWeightedAggregator,
)
from nvflare.app_common.app_event_type import AppEventType

from flare import context, global_model, result
from surgical_aggregation.server.access.class_filters import CheckResult, SelectHead
from surgical_aggregation.server.models.aggregator import SurgicalAggregator
from surgical_aggregation.server.models.global_model import MergeIntoGlobalModel
from surgical_aggregation.server.models.persistor import CheckpointPersistor
from surgical_aggregation.wire.headers import BEST

STEPS = (
    "select", "check", "accept", "aggregate", "merge", "write", "stock accept", "stock aggregate",
)  # fmt: skip
SMALL = [(8,)] * 8
DENSENET121 = [(3, 3, 128, 32)] * 58 + [(1, 1, 500, 142)] * 62 + [(342,)] * 484
"""Shapes, in about its proportions."""

FEATURES = 1024


def one_round(shapes, classes, sites):
    """Step -> seconds of one round."""
    rng = np.random.default_rng(0)
    body = {f"layer{i}/v": rng.random(shape, dtype=np.float32) for i, shape in enumerate(shapes)}
    kernels = rng.random((classes, FEATURES), dtype=np.float32)
    columns = {f"class {i}": (kernels[i], np.float32([i])) for i in range(classes)}
    model = global_model(body, columns, FEATURES)
    generator, last = MergeIntoGlobalModel(), model.to_learnable()
    persistor = CheckpointPersistor()
    select, check = SelectHead(), CheckResult()
    ours = SurgicalAggregator("fedavg", body_weighting="samples", head_weighting="samples")
    stock = InTimeAccumulateWeightedAggregator(expected_data_kind=DataKind.WEIGHTS)
    for aggregator in (ours, stock):
        aggregator.handle_event(EventType.START_RUN, context())
        aggregator.reset(context())
    taken = dict.fromkeys(STEPS, 0.0)

    def timed(step, function, *arguments):
        took, returned = seconds(partial(function, *arguments))
        taken[step] += took
        return returned

    for number in range(sites):
        site = f"site-{number}"
        at = context(site, tuple(columns), model=model)
        timed("select", select.process, generator.learnable_to_shareable(last, at), at)
        sent = result(body, columns, samples=100)
        sent.set_peer_props({ReservedKey.IDENTITY_NAME: site})
        timed("stock accept", stock.accept, sent, at)
        if not timed("accept", ours.accept, timed("check", check.process, sent, at), at):
            raise SystemExit(f"the result of {site} was refused")
    end = context(model=model)
    timed("stock aggregate", stock.aggregate, end)
    aggregated = timed("aggregate", ours.aggregate, end)
    merged = timed("merge", generator.shareable_to_learnable, aggregated, end)
    end.set_prop(BEST, {"round": 0}, private=True, sticky=False)
    persistor.save_model(last, end)  # the round before
    timed("write", persistor.handle_event, AppEventType.GLOBAL_BEST_MODEL_AVAILABLE, end)
    timed("write", persistor.save_model, merged, end)
    return taken


def main():
    wanted = options(__doc__, classes=[14, 125, 1000], sites=4, repeats=5)
    logging.disable(logging.WARNING)
    for name, shapes in {"small body": SMALL, "DenseNet121": DENSENET121}.items():
        rounds = {
            classes: [one_round(shapes, classes, wanted.sites) for _ in range(wanted.repeats)]
            for classes in wanted.classes
        }
        print(f"\n{name}, {wanted.sites} sites, ms" + "".join(f"{c:>9}" for c in wanted.classes))
        for step in STEPS:
            medians = (1000 * median(one[step] for one in rounds[c]) for c in wanted.classes)
            print(f"{step:28}" + "".join(f"{value:9.1f}" for value in medians))


if __name__ == "__main__":
    main()
