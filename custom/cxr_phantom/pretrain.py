"""Pre-train the small DenseNet on drawn shapes, as a stand-in for ImageNet."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from cxr_phantom.pretraining_images import SOURCE_CATEGORIES, source_images
from cxr_study.common import progress
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save

IMAGES = 4000
EPOCHS = 6


def pretrained_body(
    *, images: int = IMAGES, epochs: int = EPOCHS, size: int = 64, seed: int = 0
) -> Checkpoint:
    """Train a small DenseNet to tell the categories of `source_images` apart; keep its body.

    The manifest says how the body was made, and its accuracy on unseen pictures.
    """
    import keras

    from cxr_study.training.input_pipeline import dataset
    from cxr_study.training.network import Network, build
    from surgical_aggregation.site.contract.architecture import initial_body

    pictures, categories = source_images(images + images // 10, seed=seed, size=size)
    wanted = np.eye(len(SOURCE_CATEGORIES), dtype=np.float32)[categories]
    train = dataset(pictures[:images], wanted[:images], batch_size=64, shuffle_seed=seed)
    unseen = dataset(pictures[images:], wanted[images:], batch_size=64)
    model = build("small_densenet", len(SOURCE_CATEGORIES), image_size=size)
    softmax = keras.Model(
        model.inputs,
        keras.layers.Dense(len(SOURCE_CATEGORIES), activation="softmax")(
            model.get_layer("head").input
        ),
    )
    softmax.compile(
        keras.optimizers.Adam(2e-3), loss="categorical_crossentropy", metrics=["accuracy"]
    )
    with progress.bar("pre-training epochs") as report:
        count = keras.callbacks.LambdaCallback(on_epoch_end=lambda e, logs: report(e + 1, epochs))
        softmax.fit(train, epochs=epochs, shuffle=False, verbose=0, callbacks=[count])
    return initial_body(
        model,
        **Network("small_densenet", size, hidden=0).facts(),
        weights="source pictures",
        source_accuracy=float(softmax.evaluate(unseen, verbose=0, return_dict=True)["accuracy"]),
        seed=seed,
    )


if __name__ == "__main__":
    from surgical_aggregation.site.training.tensorflow_setup import configure, cores

    configure(threads=cores(), seed=0)
    save(pretrained_body(), Path(sys.argv[1]))
