"""What makes DenseNet121 train fast on a CPU: one thing changed at a time, each in its own process.

Usage: python tests/benchmarks/densenet.py [--threads 1 2] [--batches 64] [--side 64] [--images 384]

A line says the seconds of the first step, which traces, the images a second of the fastest of three
epochs, those of predictions, and the process's peak memory. At the end the input pipeline alone, at
224 pixels, beside the same network: how many times faster it makes images than that takes them.
"""

import json
import os
import resource
import subprocess
import sys

import numpy as np
from measure import fastest, options, seconds

CLASSES = 14

VARIANTS = {
    "as a site trains": (),
    "Keras's Adam": ("keras adam",),
    "Keras's batch normalisation": ("keras norm",),
    "Keras's Adam and batch normalisation": ("keras adam", "keras norm"),
    "batch normalisation frozen (fedbn+)": ("frozen",),
    "frozen, Keras's Adam": ("frozen", "keras adam"),
    "mixed_bfloat16": ("bfloat16",),
    "without determinism": ("any order",),
    "without grappler": ("no grappler",),
    "without oneDNN": ("no oneDNN",),
    "XLA, without determinism": ("xla", "any order"),
}


def measure(wanted):
    """Figures of one variant, in this process."""
    changed, threads, batch = json.loads(wanted.line)
    if "no oneDNN" in changed:
        os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
    from surgical_aggregation.site.training import tensorflow_setup

    tensorflow_setup.configure(threads, seed=0)
    import keras
    import tensorflow as tf

    from cxr_study.training.network import build
    from surgical_aggregation.site.training import keras_model
    from surgical_aggregation.site.training.training_options import TrainingOptions

    if "any order" in changed:
        from tensorflow.python.framework.config import disable_op_determinism

        disable_op_determinism()
    if "no grappler" in changed:
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    if "bfloat16" in changed:
        keras.config.set_dtype_policy("mixed_bfloat16")
    if "keras adam" in changed:
        keras_model.FusedAdam = keras.optimizers.Adam
    if "keras norm" in changed:
        keras_model.fuse = lambda layers: None
    network = build("densenet121", CLASSES, image_size=wanted.side)
    names = tuple(f"Finding {number}" for number in range(CLASSES))
    strategy = "fedbn+" if "frozen" in changed else "fedavg"
    model = keras_model.LocalModel(network, names, TrainingOptions(strategy=strategy))
    model._learner.jit_compile = "xla" in changed
    rng = np.random.default_rng(0)
    whole = wanted.images // batch * batch
    images = rng.normal(size=(whole, wanted.side, wanted.side, 3)).astype(np.float32)
    labels = (rng.random((whole, CLASSES)) < 0.3).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((images, labels)).batch(batch, drop_remainder=True)
    first, _ = seconds(lambda: model.train(data.take(1)))
    train = whole / fastest(lambda: model.train(data))
    predict = whole / fastest(lambda: model.predict(data))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([first, train, predict, memory]))


def pipeline(wanted):
    """Images a second of the pipeline alone at 224 pixels, by augmentation; in this process."""
    threads = json.loads(wanted.line)[1]
    from surgical_aggregation.site.training import tensorflow_setup

    tensorflow_setup.configure(threads, seed=0)
    from cxr_study.training.augmentation import AUGMENTATIONS
    from cxr_study.training.input_pipeline import dataset

    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (512, 224, 224), np.uint8)
    labels = np.zeros((len(images), CLASSES), np.float32)
    made = {}
    for name in AUGMENTATIONS:
        data = dataset(images, labels, batch_size=64, shuffle_seed=0, augmentation=name)
        made[name] = len(images) / fastest(lambda data=data: [None for _ in data])
    print(json.dumps(made))


def asked(wanted, line, **changes):
    """What another process measures."""
    arguments = {"side": wanted.side, "images": wanted.images, **changes}
    given = [f"--{name}={value}" for name, value in arguments.items()]
    command = [sys.executable, __file__, *given, "--line", json.dumps(line)]
    return json.loads(
        subprocess.run(command, check=True, capture_output=True).stdout.splitlines()[-1]
    )


def main():
    wanted = options(
        __doc__, threads=[1], batches=[64], side=64, images=384, variants=list(VARIANTS), line=""
    )
    if wanted.line:
        return pipeline(wanted) if json.loads(wanted.line)[0] == "pipeline" else measure(wanted)
    print(f"{'':38}{'threads':>8}{'batch':>6}{'first step':>12}{'train':>8}{'predict':>9}{'MB':>7}")
    for threads in wanted.threads:
        for batch in wanted.batches:
            for name in wanted.variants:
                first, *rest = asked(wanted, (VARIANTS[name], threads, batch))
                figures = "".join(
                    f"{n:{width}.0f}" for n, width in zip(rest, (8, 9, 7), strict=True)
                )
                print(f"{name:38}{threads:8}{batch:6}{first:10.1f} s{figures}", flush=True)
        network = asked(wanted, ((), threads, 32), side=224, images=64)[1]
        for name, made in asked(wanted, ("pipeline", threads)).items():
            print(
                f"pipeline at 224, {name:21}{threads:8}{'':18}{made:8.0f}   "
                f"{made / network:.0f} times what the network takes ({network:.1f})",
                flush=True,
            )
    return None


if __name__ == "__main__":
    main()
