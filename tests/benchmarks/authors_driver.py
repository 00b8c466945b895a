"""Calls the papers' released code, in an environment of its own; see `authors`.

Usage: authors_driver.py <folder of its src> <description of the sites, json>

Its image loader, `imflow`, is not to be had: the function that it uses stands here, and keeps all
decoded images in memory. ImageNet's weights are not loaded.
"""

import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import tensorflow as tf
from tensorflow import keras


def image_dataset_from_dataframe(
    df, X, y, label_mode, image_size, batch_size, seed, color_mode, resize_with_pad, shuffle
):
    def read(file, label):
        pixels = tf.io.decode_png(tf.io.read_file(file), channels=3)
        return tf.image.resize_with_pad(tf.cast(pixels, tf.float32), *image_size), label

    data = tf.data.Dataset.from_tensor_slices((df[X].tolist(), df[y].to_numpy(np.float32)))
    data = data.map(read, num_parallel_calls=tf.data.AUTOTUNE).cache()
    if shuffle:
        data = data.shuffle(len(df), seed=seed)
    return data.batch(batch_size)


def main(source, description):
    sys.path.insert(0, source)
    loader = ModuleType("imflow")
    loader.image_dataset_from_dataframe = image_dataset_from_dataframe
    sys.modules["imflow"] = loader
    densenet = keras.applications.densenet
    original = densenet.DenseNet121
    densenet.DenseNet121 = lambda weights=None, **arguments: original(weights=None, **arguments)
    import federated
    from dataset import Dataset

    said = json.loads(Path(description).read_text(encoding="utf-8"))
    train, validation = (
        [Dataset(pd.read_csv(site[split]), site["classes"]) for site in said["sites"]]
        for split in ("train", "validation")
    )
    federated.train_surgical_aggregation(
        len(train), train, validation, "benchmark/", strategy=federated.Strategies.FedAvg,
        learning_rate=5e-5, warmup_epochs=1, epochs=said["rounds"],
        image_shape=(said["side"], said["side"], 3), early_stopping=False,
    )  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
