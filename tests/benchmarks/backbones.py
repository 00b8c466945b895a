"""What becomes of every variable of well-known networks in a round of two sites, by strategy.

For each network of keras.applications, with random weights, and each strategy: how many variables
its body has, how many a site sends and keeps, how many of those that training changed were lost
(neither sent nor, under fedbn, the site's own), and whether a result was refused. FLARE's wire, the
executor, the aggregator and the merge are the product's; no FLARE process is started.

Usage: python tests/benchmarks/backbones.py [network ...]
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

NETWORKS = ("EfficientNetB0", "ConvNeXtTiny", "MobileNetV3Small", "ResNet50V2")
SHAPE = (32, 32, 3)


def row(name, strategy, folder):
    """Figures of one round."""
    import keras

    from body_statistics import with_statistics
    from one_process import OneProcess
    from surgical_aggregation.site.contract.architecture import initial_body

    def build(classes):
        keras.utils.clear_session(free_memory=False)  # names as in a process of its own
        body = getattr(keras.applications, name)(
            include_top=False, weights=None, input_shape=SHAPE, pooling="avg"
        )
        head = keras.layers.Dense(classes, activation="sigmoid", name="head")
        return keras.Model(body.inputs, head(body.output))

    keras.utils.set_random_seed(0)
    initial = with_statistics(initial_body(build(1)))
    federation = OneProcess(initial, build, SHAPE, folder, strategy)
    made = federation.train()
    lost, sent = set(), set()
    for site, trained in made.trained.items():
        received = {p: v for p, v in made.received[site].items() if p in trained}
        sent |= {path for path in made.sent[site] if path in initial.variables}
        changed = {p for p, v in received.items() if v.tobytes() != trained[p].tobytes()}
        own = federation.sites[site][0]._tasks.training.personal_variables() or {}
        lost |= changed - sent - own.keys()
    return len(initial.variables), len(sent), len(lost), made.refused


def main():
    """Print a line for each network and strategy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", default=NETWORKS)
    columns = ("network", "strategy", "variables", "sent", "kept", "lost", "seconds", "refused")
    print("{:18}{:10}{:>10}{:>7}{:>7}{:>7}{:>9}  {}".format(*columns), flush=True)
    for name in parser.parse_args().networks:
        for strategy in ("fedavg", "fedbn", "fedbn+"):
            began = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                total, sent, lost, refused = row(name, strategy, Path(folder))
            seconds, reason = time.monotonic() - began, next(iter(refused.values()), "-")
            print(
                f"{name:18}{strategy:10}{total:10}{sent:7}{total - sent:7}{lost:7}{seconds:9.0f}"
                f"  {reason[:90]}",
                flush=True,
            )


if __name__ == "__main__":
    main()
