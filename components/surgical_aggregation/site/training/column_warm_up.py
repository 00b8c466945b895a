"""The warm-up of new columns: train them on the features of the frozen body before federation."""

import keras

from surgical_aggregation.aggregation.averaging import Array
from surgical_aggregation.site.training.column_refit import FeatureSplit
from surgical_aggregation.site.training.loss import training_loss
from surgical_aggregation.site.training.training_options import TrainingOptions

_BATCH = 64


def warmed_up(
    split: FeatureSplit,
    kernel: Array,
    bias: Array,
    weights: Array | None,
    options: TrainingOptions,
    callback: keras.callbacks.Callback,
) -> tuple[Array, Array]:
    """Train columns with an Adam of their own.

    Args:
        split: Of the training images without augmentation, with the labels of these columns.
        kernel: To start from, float32 of shape (features, columns).
        bias: Likewise, (columns,).
        weights: Of the loss, see `loss.training_loss`; None: none.
        options: `warmup_epochs`, `warmup_learning_rate` and `focal_gamma` apply.
        callback: Called after every batch.

    Returns:
        Kernel and bias after the warm-up.

    Source:
        Kulkarni et al., ML4H 2024: 15 epochs at 5e-3 before federation.
    """
    layer = keras.layers.Dense(len(bias), activation="sigmoid", dtype="float32")
    head = keras.Sequential([keras.Input(split.features.shape[1:]), layer])
    layer.set_weights([kernel, bias])
    head.compile(
        optimizer=keras.optimizers.Adam(options.warmup_learning_rate),
        loss=training_loss(weights, options.focal_gamma),
    )
    head.optimizer.build(head.trainable_variables)  # or its first step is traced twice
    epochs = options.warmup_epochs
    head.fit(*split, batch_size=_BATCH, epochs=epochs, verbose=0, callbacks=[callback])
    kernel, bias = layer.get_weights()
    return kernel, bias
