"""A site's model and optimizer: what a round does with them, without any FLARE in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import keras
import numpy as np
import tensorflow as tf

from surgical_aggregation import metrics
from surgical_aggregation.averaging import Array
from surgical_aggregation.loss import labelled_bce
from surgical_aggregation.site import SiteError

HEAD_LAYER = "head"


class LocalModel:
    """One model and one optimizer for the whole job, compiled once.

    Args:
        model: Uncompiled; its last layer is a Dense called "head" with one unit per class.
        classes: Names of the units, in order.
        learning_rate: Of Adam.
        freeze_batch_norm: FedBN+: gamma, beta and moving statistics keep the values they are given
            and normalise with them, in training too.

    Raises:
        SiteError: The model has no layer "head", or not one unit per class.
    """

    def __init__(
        self,
        model: keras.Model,
        classes: tuple[str, ...],
        *,
        learning_rate: float,
        freeze_batch_norm: bool,
    ):
        self.model = model
        self.classes = classes
        self._head = _head_layer(model, classes)
        if freeze_batch_norm:
            for layer in _all_layers(model):
                if isinstance(layer, keras.layers.BatchNormalization):
                    layer.trainable = False
        model.compile(optimizer=keras.optimizers.Adam(learning_rate), loss=labelled_bce)
        self._body = {v.path: v for v in model.weights if not v.path.startswith(f"{HEAD_LAYER}/")}

    def set_body(self, body: Mapping[str, Array]) -> None:
        """Take over a body.

        Raises:
            SiteError: The names or shapes are not this model's.
        """
        _check_body(body, self._body)
        for path, variable in self._body.items():
            variable.assign(body[path])

    def set_columns(self, columns: Mapping[str, tuple[Array, Array]]) -> None:
        """Take over the columns of some of the site's classes; the others stay as they are.

        Raises:
            SiteError: A class is not the site's, or a column has another number of features.
        """
        kernel, bias = (value.numpy() for value in (self._head.kernel, self._head.bias))
        foreign = sorted(set(columns) - set(self.classes))
        if foreign:
            raise SiteError(f"columns of {foreign} came, which are not among this site's classes.")
        for name, (column, scalar) in columns.items():
            if column.shape != kernel.shape[:1]:
                raise SiteError(
                    f"the column of {name!r} weighs {column.shape} features; this site's head "
                    f"{kernel.shape[:1]}. Do all sites use the same backbone?"
                )
            kernel[:, self.classes.index(name)] = column
            bias[self.classes.index(name)] = scalar[0]
        self._head.kernel.assign(kernel)
        self._head.bias.assign(bias)

    def variables(self) -> dict[str, Array]:
        """Copies of all variables by path, the head's among them."""
        return {v.path: v.numpy() for v in self.model.weights}

    def evaluate(self, data: tf.data.Dataset, classes: Iterable[str]) -> dict[str, float]:
        """Metrics of a split in its own order, for some of the classes; see `metrics.named`."""
        index = [self.classes.index(name) for name in classes]
        labels = np.concatenate([batch for _, batch in data.as_numpy_iterator()])
        probabilities = self.model.predict(data, verbose=0)
        names = tuple(self.classes[i] for i in index)
        return metrics.named(names, labels[:, index], probabilities[:, index])

    def warm_up(
        self, classes: tuple[str, ...], data: tf.data.Dataset, *, epochs: int, learning_rate: float
    ) -> None:
        """Train the columns of some classes on a frozen body.

        The body's features are computed once, since nothing changes them; columns do not
        depend on each other, so those of the other classes are not touched.

        Args:
            classes: Whose columns to train, from where they stand.
            data: Training split, not augmented.
            epochs: Passes over the data.
            learning_rate: Of an Adam of its own.

        Source:
            Kulkarni et al., ML4H 2024: 15 epochs at 5e-3 before federation.
        """
        features = keras.Model(self.model.inputs, self._head.input).predict(data, verbose=0)
        labels = np.concatenate([batch for _, batch in data.as_numpy_iterator()])
        index = [self.classes.index(name) for name in classes]
        layer = keras.layers.Dense(len(index), activation="sigmoid")
        head = keras.Sequential([keras.Input(features.shape[1:]), layer])
        kernel, bias = self._head.get_weights()
        layer.set_weights([kernel[:, index], bias[index]])
        head.compile(optimizer=keras.optimizers.Adam(learning_rate), loss=labelled_bce)
        head.fit(features, labels[:, index], batch_size=64, epochs=epochs, verbose=0)
        kernel[:, index], bias[index] = layer.get_weights()
        self._head.set_weights([kernel, bias])

    def train(
        self, data: tf.data.Dataset, *, epochs: int, stop: Callable[[], bool]
    ) -> float | None:
        """Train all that is trainable.

        Args:
            data: Training split.
            epochs: Passes over the data.
            stop: Asked after every batch; training ends at once when it says yes.

        Returns:
            Mean loss of the last epoch; None when stopped.
        """
        watch = _StopWhen(stop)
        history = self.model.fit(data, epochs=epochs, shuffle=False, verbose=0, callbacks=[watch])
        return None if watch.stopped else float(history.history["loss"][-1])


class _StopWhen(keras.callbacks.Callback):
    def __init__(self, stop: Callable[[], bool]):
        super().__init__()
        self._stop = stop
        self.stopped = False

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        if self._stop():
            self.stopped = True
            self.model.stop_training = True


def _all_layers(layer: keras.Layer) -> Iterator[keras.Layer]:
    """A layer and those inside it, however deep: a backbone may stand in a model as one layer."""
    yield layer
    for inner in getattr(layer, "layers", ()):
        yield from _all_layers(inner)


def _head_layer(model: keras.Model, classes: tuple[str, ...]) -> keras.layers.Dense:
    layer = model.layers[-1]
    if layer.name != HEAD_LAYER or not isinstance(layer, keras.layers.Dense):
        raise SiteError(
            f"the model's last layer must be a Dense called {HEAD_LAYER!r}; got "
            f"{type(layer).__name__} called {layer.name!r}."
        )
    if layer.units != len(classes):
        raise SiteError(
            f"the head needs one unit for each of {len(classes)} classes; it has {layer.units}."
        )
    return layer


def _check_body(body: Mapping[str, Array], own: Mapping[str, keras.Variable]) -> None:
    differ = sorted(body.keys() ^ own.keys())
    if not differ:
        differ = sorted(path for path in own if body[path].shape != tuple(own[path].shape))
    if differ:
        raise SiteError(
            f"the server's body and this site's differ in {len(differ)} variables, e.g. "
            f"{differ[:3]}. Is the initial body of the same backbone and image size as the site's "
            "model?"
        )
