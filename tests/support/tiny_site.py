"""Tiny sites: different classes, a tiny network, random data."""

import itertools
import json
from pathlib import Path

import numpy as np

from surgical_aggregation.site.contract.site import Site

INPUTS, FEATURES = 3, 4

COMPLAINT = "the images of this site are tiny"
"""What a site that complains says in its error log."""


class TinySite(Site):
    """The site that a json file describes: name -> {"classes": [...], "images": n}.

    With "complains": true it logs an error, and goes on.
    """

    def __init__(self, site: str, table: str):
        super().__init__()
        self.site, self.table = site, table

    @property
    def classes(self):
        return tuple(self._entry["classes"])

    @property
    def _entry(self):
        return json.loads(Path(self.table).read_text(encoding="utf-8"))[self.site]

    def model(self):
        return tiny_model(len(self.classes))

    def arrays(self, split):
        if self._entry.get("complains"):
            self.logger.error(COMPLAINT)
        rng = np.random.default_rng(sum(map(ord, self.site + split)))
        images = rng.normal(size=(self._entry["images"], INPUTS)).astype(np.float32)
        labels = (rng.random((len(images), len(self.classes))) < 0.4).astype(np.float32)
        return images, labels

    def order(self, number):
        return np.random.default_rng([1, number]).permutation(self._entry["images"])

    def data(self, split, *, training=False, first_pass=0):
        import tensorflow as tf

        images, labels = self.arrays(split)
        if not training:
            return tf.data.Dataset.from_tensor_slices((images, labels)).batch(8)
        passes = itertools.count(first_pass)

        def shuffled():
            order = self.order(next(passes))
            yield from zip(images[order], labels[order], strict=True)

        kinds = tuple(tf.TensorSpec(a.shape[1:], tf.float32) for a in (images, labels))
        batches = tf.data.Dataset.from_generator(shuffled, output_signature=kinds)
        return batches.apply(tf.data.experimental.assert_cardinality(len(images))).batch(8)


class UnionHeadSite(TinySite):
    """A tiny site whose head counts as one of the classes of all sites."""

    union_head = True


def tiny_model(classes):
    """Three inputs, a dense layer with batch normalisation, and the head."""
    import keras

    inputs = keras.Input((INPUTS,))
    x = keras.layers.Dense(FEATURES, activation="relu", name="dense")(inputs)
    x = keras.layers.BatchNormalization(name="bn")(x)
    return keras.Model(inputs, keras.layers.Dense(classes, activation="sigmoid", name="head")(x))
