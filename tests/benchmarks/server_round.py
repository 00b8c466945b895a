"""Time what the server does in a round, step by step, by number of classes.

The steps: SelectHead for each site, CheckResult and accept of each result, one aggregate, one merge
into the global model; every site has every class. The body is small: what is left is the classes'.
"""

import logging
from functools import partial
from statistics import median

import numpy as np
from measure import options, seconds
from nvflare.apis.event_type import EventType

from flare import context, global_model, result
from surgical_aggregation.server.access.class_filters import CheckResult, SelectHead
from surgical_aggregation.server.models.aggregator import SurgicalAggregator
from surgical_aggregation.server.models.global_model import MergeIntoGlobalModel, to_learnable

STEPS = ("select", "check", "accept", "aggregate", "merge")
FEATURES = 1024


def one_round(classes, sites):
    """Step -> seconds of one round."""
    rng = np.random.default_rng(0)
    body = {f"layer{i}/v": rng.random(8, dtype=np.float32) for i in range(8)}
    kernels = rng.random((classes, FEATURES), dtype=np.float32)
    columns = {f"class {i}": (kernels[i], np.float32([i])) for i in range(classes)}
    model = global_model(body, columns, FEATURES)
    generator, last = MergeIntoGlobalModel(), to_learnable(model)
    select, check = SelectHead(), CheckResult()
    aggregator = SurgicalAggregator("fedavg", body_weighting="samples", head_weighting="samples")
    aggregator.handle_event(EventType.START_RUN, context())
    aggregator.reset(context())
    taken = dict.fromkeys(STEPS, 0.0)

    def timed(step, function, *arguments):
        took, returned = seconds(partial(function, *arguments))
        taken[step] += took
        return returned

    for number in range(sites):
        at = context(f"site-{number}", tuple(columns), model=model)
        timed("select", select.process, generator.learnable_to_shareable(last, at), at)
        sent = timed("check", check.process, result(body, columns, samples=100), at)
        if not timed("accept", aggregator.accept, sent, at):
            raise SystemExit(f"the result of site-{number} was refused")
    end = context(model=model)
    averaged = timed("aggregate", aggregator.aggregate, end)
    timed("merge", generator.shareable_to_learnable, averaged, end)
    return taken


def main():
    wanted = options(__doc__, classes=[14, 125, 1000], sites=4, repeats=5)
    logging.disable(logging.WARNING)
    rounds = {
        classes: [one_round(classes, wanted.sites) for _ in range(wanted.repeats)]
        for classes in wanted.classes
    }
    print(f"{wanted.sites} sites, ms; classes:   " + "".join(f"{c:>9}" for c in wanted.classes))
    for step in STEPS:
        medians = (1000 * median(one[step] for one in rounds[c]) for c in wanted.classes)
        print(f"{step:28}" + "".join(f"{value:9.1f}" for value in medians))


if __name__ == "__main__":
    main()
