"""Which networks of keras.applications go through two rounds of each strategy, and how fast.

Usage: python tests/benchmarks/backbones.py [--backbones mobilenetv2 efficientnetb0] [--side 75]

Two sites with other classes train on random images in one process: site, wire, aggregator, merge,
site, as `tests/surgical_aggregation/test_round_trip.py` does. A line says what a site receives and
sends, and that after two rounds all sites have the global body, but for batch normalisation under
fedbn.
"""

import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import keras
import numpy as np
from measure import options

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from body_statistics import with_statistics
from cxr_study.training.network import build
from one_process import OneProcess
from surgical_aggregation.aggregation.variable_kinds import kinds_of
from surgical_aggregation.site.contract.architecture import initial_body

SOME = [
    *("densenet121", "efficientnetb0", "efficientnetv2b0", "mobilenetv2", "mobilenetv3small"),
    *("resnet50", "resnet50v2", "xception", "inceptionv3", "nasnetmobile", "convnexttiny", "vgg16"),
]


def check(backbone, side, strategy, folder):
    network = partial(build, backbone, image_size=side)
    keras.utils.set_random_seed(0)
    start = with_statistics(initial_body(network(1)))
    federation = OneProcess(start, network, (side, side, 3), folder, strategy)
    began = time.monotonic()
    rounds = [federation.train() for _ in range(2)]
    seconds = time.monotonic() - began
    assert not any(made.refused for made in rounds)
    own = kinds_of(start.manifest, start.variables).batch_norm if strategy == "fedbn" else ()
    for found in federation.evaluate().values():
        for path, value in federation.model.body.items():
            assert path in own or found[path].tobytes() == value.tobytes()
    sent = next(iter(rounds[0].sent.values()))
    megabytes = sum(np.asarray(value).nbytes for value in sent.values()) / 1e6
    return f"{len(start.variables):5} variables, {megabytes:6.1f} MB sent, {seconds:5.0f} s"


def main():
    given = options(__doc__, backbones=SOME, side=75)
    for backbone in given.backbones:
        for strategy in ("fedavg", "fedbn", "fedbn+"):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    said = check(backbone, given.side, strategy, Path(folder))
                except Exception as error:
                    said = f"{type(error).__name__}: {error}"[:100]
            print(f"{backbone:18}{strategy:8}{said}", flush=True)


if __name__ == "__main__":
    main()
