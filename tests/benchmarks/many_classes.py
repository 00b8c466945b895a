"""Time what the server does in a round of many classes, step by step, and how it grows with them.

The steps of four sites that hold every class: SelectHead for each, CheckResult and accept of each
result, one aggregate, one merge into the global model. The body is small, so what is left is the
classes'. Linear is a last column of about 8.

Usage: python tests/benchmarks/many_classes.py [--classes 125 1000] [--sites 4] [--repeats 5]
"""

import argparse
import logging
import sys
import time
from pathlib import Path

import numpy as np

from surgical_aggregation.server.access.class_filters import CheckResult, SelectHead
from surgical_aggregation.server.models.aggregator import SurgicalAggregator
from surgical_aggregation.server.models.global_model import MergeIntoGlobalModel, to_learnable

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from flare import context, global_model, result

STEPS = ("select", "check", "accept", "aggregate", "merge")


def seconds(classes, features, sites):
    """Step -> seconds of one round, in which every site holds every class."""
    rng = np.random.default_rng(0)
    body = {f"layer{i}/kernel": rng.random(8, dtype=np.float32) for i in range(8)}
    names = [f"class {i}" for i in range(classes)]

    def columns():
        kernels = rng.random((classes, features), dtype=np.float32)
        return {c: (kernels[i], np.float32([i])) for i, c in enumerate(names)}

    model = global_model(body, columns(), features)
    results = {f"site-{i}": result(body, columns()) for i in range(sites)}
    select, check, aggregator = SelectHead(), CheckResult(), SurgicalAggregator("fedavg")
    generator, last = MergeIntoGlobalModel(), to_learnable(model)
    contexts = {site: context(site, names, model=model) for site in results}
    taken = dict.fromkeys(STEPS, 0.0)

    def timed(step, function, *arguments):
        began = time.perf_counter()
        returned = function(*arguments)
        taken[step] += time.perf_counter() - began
        return returned

    for site, sent in results.items():
        task = generator.learnable_to_shareable(last, contexts[site])
        timed("select", select.process, task, contexts[site])
        checked = timed("check", check.process, sent, contexts[site])
        if not timed("accept", aggregator.accept, checked, contexts[site]):
            raise SystemExit(f"the result of {site} was refused")
    end = context(model=model)
    aggregate = timed("aggregate", aggregator.aggregate, end)
    timed("merge", generator.shareable_to_learnable, aggregate, end)
    return taken


def main():
    """Print a table of the fastest rounds for each number of features."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs=2, default=[125, 1000])
    parser.add_argument("--features", type=int, nargs="+", default=[64, 1024])
    parser.add_argument("--sites", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    few, many = options.classes
    for features in options.features:
        rounds = {
            classes: [seconds(classes, features, options.sites) for _ in range(options.repeats)]
            for classes in options.classes
        }
        print(f"\n{features} features, {options.sites} sites")
        print(f"{'step':10}{few:6d} classes (ms){many:6d} classes (ms)   ratio")
        for step in (*STEPS, "all"):
            short, long = (
                1000 * min(t[step] if step in t else sum(t.values()) for t in rounds[classes])
                for classes in options.classes
            )
            print(f"{step:10}{short:19.1f}{long:19.1f}{long / short:8.1f}")


if __name__ == "__main__":
    main()
