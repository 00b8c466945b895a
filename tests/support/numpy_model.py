"""The tiny site in NumPy: its batches, and a stand-in for `LocalModel`."""

import itertools
from collections import namedtuple

import numpy as np

from surgical_aggregation.aggregation import metrics
from surgical_aggregation.aggregation.batch_norm_strategy import VariableKinds
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.training.column_refit import FeatureSplit, best_refit
from surgical_aggregation.site.training.task_abort import check, never
from tiny_site import FEATURES, INPUTS, TinySite

Predicted = namedtuple("Predicted", ["features", "probabilities", "labels"])

EPSILON, MOMENTUM = 1e-3, 0.9
BATCH_NORM = ("bn/gamma", "bn/beta", "bn/moving_mean", "bn/moving_variance")
MOVING = BATCH_NORM[2:]
HEAD = ("head/kernel", "head/bias")


class ArraySite(TinySite):
    def model(self):
        classes = len(self.classes)
        return {
            "dense/kernel": np.zeros((INPUTS, FEATURES), np.float32),
            "dense/bias": np.zeros(FEATURES, np.float32),
            **{name: np.ones(FEATURES, np.float32) for name in BATCH_NORM},
            "head/kernel": np.full((FEATURES, classes), 0.1, np.float32),
            "head/bias": np.zeros(classes, np.float32),
        }

    def data(self, split, *, training=False, first_pass=0):
        images, labels = self.arrays(split)
        passes = itertools.count(first_pass)

        def a_pass():
            order = self.order(next(passes)) if training else np.arange(len(images))
            for rows in np.split(order, range(8, len(order), 8)):
                yield images[rows], labels[rows]

        return Batches(a_pass)


class Batches:
    """Batches, the same at each iteration, as a `tf.data.Dataset`."""

    def __init__(self, a_pass):
        self.a_pass = a_pass

    def __iter__(self):
        return iter(self.a_pass())

    as_numpy_iterator = __iter__


class LocalModel:
    """Three inputs, a dense layer with batch normalisation, and the head; see the real one.

    The optimizer is gradient descent with momentum, which is the training's state.
    """

    kinds = VariableKinds(frozenset(BATCH_NORM))

    def __init__(self, model, classes, options, loss_weights=None, missing=None):
        self.classes, self.options, self._values = classes, options, model
        self._momenta = {name: np.zeros_like(value) for name, value in model.items()}

    def set_body(self, body):
        self.assign(body)

    def set_columns(self, columns):
        for name, (kernel, bias) in columns.items():
            at = self.classes.index(name)
            self._values["head/kernel"][:, at] = kernel
            self._values["head/bias"][at] = bias[0]

    def assign(self, variables):
        for name in self._values.keys() & variables.keys():
            self._values[name] = np.array(variables[name])

    def variables(self):
        return {name: value.copy() for name, value in self._values.items()}

    def dense_head(self, columns):
        zeros = LocalModel({name: 0 * self._values[name] for name in HEAD}, self.classes, None)
        zeros.set_columns(columns)
        return zeros.variables()

    def training_state(self):
        return {f"optimizer/{name}": value.copy() for name, value in self._momenta.items()}

    def set_training_state(self, state):
        own = self.training_state()
        if state.keys() != own.keys() or any(state[n].shape != own[n].shape for n in own):
            raise SiteError("the training state is of another model.")
        self._momenta = {name: np.array(state[f"optimizer/{name}"]) for name in self._momenta}

    @np.errstate(all="ignore")
    def predict(self, data, stop=never):
        batches = []
        for images, labels in data:
            batches.append((*self._forward(images)[2:], labels))
            check(stop)
        return Predicted(*map(np.concatenate, zip(*batches, strict=True)))

    def metrics(self, predicted, classes, *, counts=False):
        names = tuple(classes)
        index = [self.classes.index(name) for name in names]
        found, labels = predicted.probabilities[:, index], predicted.labels[:, index]
        values = metrics.named(names, labels, found)
        return values | (metrics.counts(names, labels) if counts else {})

    def evaluate(self, data, classes, stop=never):
        return self.metrics(self.predict(data, stop), classes)

    def warm_up(self, classes, data, stop=never):
        index = [self.classes.index(name) for name in classes]
        for _ in range(self.options.warmup_epochs):
            for images, labels in data:
                gradients = self._gradients(images, labels)
                for name in HEAD:
                    step = self.options.warmup_learning_rate * gradients[name]
                    self._values[name][..., index] -= step[..., index]
                check(stop)

    def refit(self, train, validation, stop=never):
        splits = (self.predict(data, stop) for data in (train, validation))
        fitted = best_refit(
            *(FeatureSplit(split.features, split.labels) for split in splits),
            *(self._values[name] for name in HEAD),
        )
        self.assign(dict(zip(HEAD, fitted[:2], strict=True)))
        return fitted.penalty

    @np.errstate(all="ignore")  # as TensorFlow does
    def train(self, data, stop=never, *, pseudo_labels=False):
        frozen = self.options.strategy == "fedbn+"
        trained = [name for name in self._values if name not in (BATCH_NORM if frozen else MOVING)]
        for _ in range(self.options.epochs):
            losses = []
            for images, labels in data:
                activated, *_, found = self._forward(images)
                losses.append(metrics.bce(labels, found).mean())
                gradients = self._gradients(images, labels)
                for name in trained:
                    self._momenta[name] = MOMENTUM * self._momenta[name] + gradients[name]
                    self._values[name] -= self.options.learning_rate * self._momenta[name]
                if not frozen:
                    for name, now in zip(MOVING, (np.mean, np.var), strict=True):
                        self._values[name] += 0.1 * (now(activated, axis=0) - self._values[name])
                check(stop)
        return float(np.mean(losses))

    def _forward(self, images):
        """The dense layer's outputs, the same scaled, the features and the probabilities."""
        v = self._values
        activated = np.maximum(images @ v["dense/kernel"] + v["dense/bias"], 0)
        scaled = (activated - v["bn/moving_mean"]) / np.sqrt(v["bn/moving_variance"] + EPSILON)
        features = scaled * v["bn/gamma"] + v["bn/beta"]
        logits = features @ v["head/kernel"] + v["head/bias"]
        return activated, scaled, features, 1 / (1 + np.exp(-logits))

    def _gradients(self, images, labels):
        """Of the mean binary cross-entropy, by variable."""
        v = self._values
        activated, scaled, features, found = self._forward(images)
        at_logits = (found - labels) / labels.size
        at_features = at_logits @ v["head/kernel"].T
        slope = (activated > 0) * v["bn/gamma"] / np.sqrt(v["bn/moving_variance"] + EPSILON)
        at_dense = at_features * slope
        return {
            "dense/kernel": images.T @ at_dense,
            "dense/bias": at_dense.sum(axis=0),
            "bn/gamma": (at_features * scaled).sum(axis=0),
            "bn/beta": at_features.sum(axis=0),
            "head/kernel": features.T @ at_logits,
            "head/bias": at_logits.sum(axis=0),
        }
