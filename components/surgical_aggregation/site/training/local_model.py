"""A site's Keras model: trains, warms up new columns, evaluates."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from nvflare.app_opt.tf.fedprox_loss import TFFedProxLoss

from surgical_aggregation.aggregation import batch_norm_strategy as strategies
from surgical_aggregation.aggregation import metrics
from surgical_aggregation.aggregation.averaging import Array
from surgical_aggregation.site.contract import architecture
from surgical_aggregation.site.contract.site import SiteError, check_body, shapes_of
from surgical_aggregation.site.training.column_refit import FeatureSplit, best_refit
from surgical_aggregation.site.training.column_warm_up import warmed_up
from surgical_aggregation.site.training.fused_kernels import FusedAdam, fuse
from surgical_aggregation.site.training.loss import TaughtOutputs, Teacher, training_loss
from surgical_aggregation.site.training.task_abort import Stop, check, never
from surgical_aggregation.site.training.training_options import TrainingOptions
from surgical_aggregation.wire.variables import Columns


class Predicted(NamedTuple):
    """A model's outputs for a dataset, in order.

    Attributes:
        features: Inputs of the head, float32 of shape (images, features).
        probabilities: Outputs, float32 of shape (images, classes).
        labels: As the dataset has them, same shape.
    """

    features: np.ndarray
    probabilities: np.ndarray
    labels: np.ndarray


class LocalModel:
    """A site's model with its optimizer, compiled once for the whole job.

    Args:
        model: Uncompiled model whose last layer is a Dense called "head" with one unit per class.
        classes: Names of the units, in order.
        options: How to train. Default None: the defaults, enough for evaluation.
        loss_weights: See `loss.training_loss`. Default None: all 1.
        missing: Whether each class has no label at the site, see `loss.TaughtOutputs`. Default
            None: none is missing.

    Attributes:
        kinds: Kinds of the body's variables, from the network's layers.

    Raises:
        SiteError: The model does not meet the requirements of `contract.architecture`.
    """

    def __init__(
        self,
        model: keras.Model,
        classes: tuple[str, ...],
        options: TrainingOptions | None = None,
        loss_weights: np.ndarray | None = None,
        missing: tuple[bool, ...] | None = None,
    ):
        options = options or TrainingOptions()
        self.model = model
        self.classes = classes
        self.options = options
        self._loss_weights = loss_weights
        self._head = architecture.head_layer(model, classes)
        self._body = architecture.body_variables(model)
        self.kinds = architecture.variable_kinds(model)
        architecture.bind(model)
        frozen = strategies.find(options.strategy).frozen(self._body, self.kinds)
        # Including constants, so that a layer with only frozen ones becomes untrainable.
        architecture.freeze(model, frozen | self.kinds.constant)
        # The received values, to which FedProx pulls the trainable variables.
        anchored = model.trainable_variables if options.proximal else []
        self._received = [tf.Variable(v.value, trainable=False) for v in anchored]
        network = keras.Model(model.input, [self._head.input, model.output])
        self._learner, self._taught = model, None
        if options.pseudo_labels != "none" and missing and any(missing):
            self._taught = TaughtOutputs(Teacher(model), missing)
            self._learner = keras.Model(model.input, self._taught(model.input, model.output))
        loss = training_loss(loss_weights, options.focal_gamma)
        if options.proximal:
            loss = TFFedProxLoss(model.trainable_variables, self._received, options.proximal, loss)
        adam = FusedAdam(options.learning_rate, global_clipnorm=options.gradient_clip or None)
        self._learner.compile(optimizer=adam, loss=loss)
        # Build it, so that its state can be read and set before the first batch. In float16,
        # Keras has wrapped it.
        self._learner.optimizer.build(model.trainable_variables)
        # Generalized to any batch size when a second size occurs.
        self._forward = tf.function(
            lambda images: [tf.cast(o, tf.float32) for o in network(images, training=False)],
            reduce_retracing=True,
        )

    def set_body(self, body: Mapping[str, Array]) -> None:
        """Load a body, by path.

        Raises:
            SiteError: Paths or shapes are not this model's.
        """
        check_body(shapes_of(body), shapes_of(self._body))
        for path, variable in self._body.items():
            variable.assign(body[path])

    def set_columns(self, columns: Columns) -> None:
        """Load the columns of some of the site's classes; the others are unchanged.

        Raises:
            SiteError: A class is not the site's, or a column has another number of features.
        """
        if unlabelled := sorted(set(columns) - set(self.classes)):
            raise SiteError(
                f"received columns of {unlabelled}, which are not among this site's classes."
            )
        kernel, bias = self._head.get_weights()
        for name, (column, _) in columns.items():
            if column.shape != kernel.shape[:1]:
                raise SiteError(
                    f"the column of {name!r} has shape {column.shape}; this site's head needs "
                    f"{kernel.shape[:1]}. Do all sites use the same backbone?"
                )
        self._fill(kernel, bias, columns)
        self._head.set_weights([kernel, bias])

    def variables(self) -> dict[str, Array]:
        """Copies of all variables by path, including the head's."""
        # Keras returns a scalar for a 0-d variable
        return {v.path: np.asarray(v.numpy()) for v in self.model.weights}

    def assign(self, variables: Mapping[str, Array]) -> None:
        """Load variables by path, possibly including the head's; unknown paths are ignored."""
        for variable in self.model.weights:
            if variable.path in variables:
                variable.assign(variables[variable.path])

    def dense_head(self, columns: Columns) -> dict[str, Array]:
        """Kernel and bias, by path, of a head with these columns and zeros for other classes."""
        kernel, bias = map(np.zeros_like, self._head.get_weights())
        self._fill(kernel, bias, columns)
        return {self._head.kernel.path: kernel, self._head.bias.path: bias}

    def _fill(self, kernel: Array, bias: Array, columns: Columns) -> None:
        for name, (column, scalar) in columns.items():
            kernel[:, self.classes.index(name)] = column
            bias[self.classes.index(name)] = scalar[0]

    def training_state(self) -> dict[str, Array]:
        """Copies of the optimizer's and the random generators' state."""
        return {name: v.numpy() for name, v in self._training_state().items()}

    def set_training_state(self, state: Mapping[str, Array]) -> None:
        """Load a `training_state`; the learning rate remains that of the options.

        Raises:
            SiteError: The state is of another model or optimizer.
        """
        own = self._training_state()
        if state.keys() != own.keys() or any(state[n].shape != tuple(own[n].shape) for n in own):
            raise SiteError("the training state is of another model, or of other classes.")
        for name, variable in own.items():
            variable.assign(state[name])
        self._learner.optimizer.learning_rate = self.options.learning_rate

    def _training_state(self) -> dict[str, keras.Variable]:
        generators = [v for v in self.model.variables if v.path.endswith(architecture.RANDOM_STATE)]
        return {
            **{f"optimizer/{i}": v for i, v in enumerate(self._learner.optimizer.variables)},
            **{f"random/{i}": v for i, v in enumerate(generators)},
        }

    def evaluate(
        self, data: tf.data.Dataset, classes: Iterable[str], stop: Stop = never
    ) -> dict[str, float]:
        """Metrics of a dataset for some of the model's classes, in one pass; see `metrics`."""
        return self.metrics(self.predict(data, stop), classes)

    def metrics(
        self, predicted: Predicted, classes: Iterable[str], *, counts: bool = False
    ) -> dict[str, float]:
        """Metrics of outputs for some of the model's classes.

        Returns:
            Those of `aggregation.metrics.named`; with `counts`, also `aggregation.metrics.counts`.
        """
        names = tuple(classes)
        index = [self.classes.index(name) for name in names]
        labels = predicted.labels[:, index]
        values = metrics.named(names, labels, predicted.probabilities[:, index])
        return values | (metrics.counts(names, labels) if counts else {})

    def predict(self, data: tf.data.Dataset, stop: Stop = never) -> Predicted:
        """Outputs for a dataset, in one pass."""
        # Traced here for any batch size; Keras would trace again for the last, smaller batch.
        self._forward.get_concrete_function(data.element_spec[0])
        batches = []
        for images, labels in data:
            batches.append([value.numpy() for value in (*self._forward(images), labels)])
            check(stop)
        return Predicted(*(np.concatenate(parts) for parts in zip(*batches, strict=True)))

    def outputs(self, images: tf.Tensor) -> tuple[np.ndarray, np.ndarray]:
        """Inputs of the head, and probabilities, for one batch of images, which may be empty."""
        number = len(images)
        # With an empty batch TensorFlow fails on some processors.
        given = images if number else tf.zeros((1, *images.shape[1:]))
        features, probabilities = self._forward(given)
        return features.numpy()[:number], probabilities.numpy()[:number]

    def warm_up(self, classes: tuple[str, ...], data: tf.data.Dataset, stop: Stop = never) -> None:
        """Train the columns of some classes on the frozen body; see `column_warm_up`.

        The features of the split, which is not augmented, are computed once. The columns of other
        classes are unchanged; so are all columns if `stop` ends the warm-up.

        Args:
            classes: Classes whose columns to train.
            data: The training split without augmentation.
            stop: Called after every batch.
        """
        features, _, labels = self.predict(data, stop)
        index = [self.classes.index(name) for name in classes]
        kernel, bias = self._head.get_weights()
        kernel[:, index], bias[index] = warmed_up(
            FeatureSplit(features, labels[:, index]), kernel[:, index], bias[index],
            None if self._loss_weights is None else self._loss_weights[:, index],
            self.options, _StopWhen(stop),
        )  # fmt: skip
        self._head.set_weights([kernel, bias])

    def refit(
        self, train: tf.data.Dataset, validation: tf.data.Dataset, stop: Stop = never
    ) -> float | None:
        """Refit all columns on the frozen body; see `column_refit.best_refit`.

        Returns:
            The penalty with the smallest validation loss; None: the columns are unchanged.
        """
        fit_split, selection_split = (
            FeatureSplit(split.features, split.labels)
            for split in (self.predict(data, stop) for data in (train, validation))
        )
        kernel, bias = self._head.get_weights()
        kernel, bias, penalty = best_refit(
            fit_split, selection_split, kernel, bias, self._loss_weights
        )
        self._head.set_weights([kernel, bias])
        return penalty

    def train(
        self, data: tf.data.Dataset, stop: Stop = never, *, pseudo_labels: bool = False
    ) -> float:
        """Train for one round; if `stop` ends it, the model is that of the last batch.

        Args:
            data: Batches (images, labels).
            stop: Called after every batch.
            pseudo_labels: Whether the pseudo-labels of the options count in this round. Default
                False.

        Returns:
            Mean loss of the last epoch.
        """
        for anchor, variable in zip(self._received, self.model.trainable_variables, strict=False):
            anchor.assign(variable)
        # Only now, since Keras loads files of its own classes only.
        fuse(architecture.batch_norm_layers(self.model))
        if self._taught:
            self._taught.teacher.learn()
            self._taught.counts.assign(float(pseudo_labels))
        history = self._learner.fit(
            data, epochs=self.options.epochs, shuffle=False, verbose=0, callbacks=[_StopWhen(stop)]
        )
        return float(history.history["loss"][-1])


class _StopWhen(keras.callbacks.Callback):
    def __init__(self, stop: Stop):
        super().__init__()
        self._stop = stop

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        check(self._stop)
