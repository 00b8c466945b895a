"""Time one round's aggregation of a DenseNet121, ours beside FLARE's stock aggregator.

Usage: python tests/benchmarks/aggregate.py [--sites 2 10] [--repeats 5]
"""

import argparse
import logging
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from nvflare.apis.dxo import DataKind
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import ReservedKey
from nvflare.app_common.aggregators.intime_accumulate_model_aggregator import (
    InTimeAccumulateWeightedAggregator,
)

from surgical_aggregation.server.models.aggregator import SurgicalAggregator

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from flare import context, global_model, result

FEATURES = 1024
CLASSES = 14


def densenet121_body():
    """Shapes of DenseNet121's body in about its proportions: 604 arrays, 7.0 million numbers."""
    rng = np.random.default_rng(0)
    shapes = [(3, 3, 128, 32)] * 58 + [(1, 1, 500, 142)] * 62 + [(342,)] * 484
    return {f"layer{i}/v": rng.random(s, dtype=np.float32) for i, s in enumerate(shapes)}


def seconds(aggregator, shareables, model):
    """Seconds from the first result to the aggregate."""
    aggregator.handle_event(EventType.START_RUN, context())
    aggregator.reset(context())
    began = time.perf_counter()
    for site, shareable in shareables:
        if not aggregator.accept(shareable, context(site, model=model)):
            raise SystemExit(f"the result of {site} was refused")
    aggregator.aggregate(context(model=model))
    return time.perf_counter() - began


def surgical():
    """Our aggregator, which weighs by images as the stock one does."""
    return SurgicalAggregator("fedavg", body_weighting="samples", head_weighting="samples")


def main():
    """Print a table of medians."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sites", type=int, nargs="+", default=[2, 10])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    body = densenet121_body()
    model = global_model(body, features=FEATURES)
    print(f"{sum(v.size for v in body.values()) / 1e6:.2f} million numbers, {len(body)} arrays")
    print("sites   ours (s)   stock (s)   ratio")
    for count in options.sites:
        column = (np.zeros(FEATURES, np.float32), np.zeros(1, np.float32))
        columns = {f"class {i}": column for i in range(CLASSES)}
        shareables = [
            (f"site-{i}", result(body, columns, samples=100, current_round=0)) for i in range(count)
        ]
        for site, shareable in shareables:
            shareable.set_peer_props({ReservedKey.IDENTITY_NAME: site})
        pairs = [
            (
                seconds(surgical(), shareables, model),
                seconds(
                    InTimeAccumulateWeightedAggregator(expected_data_kind=DataKind.WEIGHTS),
                    shareables,
                    model,
                ),
            )
            for _ in range(options.repeats)
        ]
        ours, stock = (statistics.median(times) for times in zip(*pairs, strict=True))
        print(f"{count:5d} {ours:10.3f} {stock:11.3f} {ours / stock:7.2f}")


if __name__ == "__main__":
    main()
