"""TensorFlow's kernels do what Keras's sums and products do, but for rounding."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from surgical_aggregation.site.training import fused_kernels
from surgical_aggregation.site.training.fused_kernels import FusedAdam, FusedBatchNormalization

RNG = np.random.default_rng(3)
IMAGES = RNG.normal(2, 3, size=(4, 5, 5, 3)).astype(np.float32)
SLOPE = RNG.normal(size=IMAGES.shape).astype(np.float32)
BOTH = (keras.layers.BatchNormalization, FusedBatchNormalization)


def pair(**options):
    """Keras's layer and ours, with the same variables, which are not the initial ones."""
    layers = [made(**options) for made in BOTH]
    values = None
    for layer in layers:
        layer.build((None, None, None, 3))
        values = values or [RNG.uniform(0.5, 2, v.shape) for v in layer.variables]
        layer.set_weights(values)
    return layers


def passed(layer, images=IMAGES, *, training=True):
    """Outputs, gradients by inputs and trainable variables, and the variables afterwards."""
    images = tf.constant(images)
    with tf.GradientTape() as tape:
        tape.watch(images)
        outputs = layer(images, training=training)
        loss = tf.reduce_sum(tf.cast(outputs, tf.float32) * SLOPE)
    slopes = tape.gradient(loss, [images, *layer.trainable_variables])
    return [np.asarray(tf.cast(v, tf.float32)) for v in (outputs, *slopes, *layer.variables)]


def same(found, wanted, tolerance=2e-5):
    for ours, keras_ in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, keras_, rtol=tolerance, atol=tolerance * 10)


@pytest.mark.parametrize("options", [
    {}, {"axis": 3, "momentum": 0.7, "epsilon": 1e-2}, {"scale": False}, {"center": False},
    {"scale": False, "center": False},
], ids=str)  # fmt: skip
def test_a_batch_is_normalised_and_counted_as_by_keras(options):
    wanted, found = (passed(layer) for layer in pair(**options))
    same(found, wanted)


@pytest.mark.parametrize("training", [True, False])
def test_fixed_statistics_are_kerass_own_bit_for_bit(training):
    layers = pair(trainable=not training)
    before = layers[0].get_weights()
    wanted, found = (passed(layer, training=training) for layer in layers)
    for ours, keras_ in ((found, wanted), (layers[1].get_weights(), before)):
        assert all(np.array_equal(a, b) for a, b in zip(ours, keras_, strict=True))


@pytest.mark.parametrize(("options", "shape"), [
    ({}, (8, 3)), ({"axis": 1}, (2, 3, 4, 4)), ({"dtype": "float64"}, (2, 4, 4, 3)),
], ids=["rows", "channels first", "float64"])  # fmt: skip
def test_what_the_kernel_does_not_do_is_left_to_keras(options, shape):
    data = RNG.normal(size=shape).astype(np.float32)
    layers = [made(**options) for made in BOTH]
    outputs = [np.asarray(layer(data, training=True)) for layer in layers]
    pairs = [outputs, *zip(*(layer.get_weights() for layer in layers), strict=True)]
    assert all(np.array_equal(a, b) for a, b in pairs)


@pytest.mark.filterwarnings("ignore:.*bfloat16.*")
def test_in_half_precision_images_stay_as_they_are_and_statistics_are_float32():
    layer, fused = pair(dtype="mixed_bfloat16")
    half = tf.cast(IMAGES, tf.bfloat16)
    assert fused(half, training=True).dtype == tf.bfloat16
    assert {v.dtype for v in fused.variables} == {"float32"}
    fused.set_weights(layer.get_weights())
    same(passed(fused, half)[:1], passed(layer, half)[:1], tolerance=2e-2)


def test_keras_layers_alone_are_fused_with_the_variables_they_have():
    class Other(keras.layers.BatchNormalization):
        pass

    layers = [keras.layers.BatchNormalization(), Other(), keras.layers.Dense(2)]
    layers[0].build((None, None, None, 3))
    variables = list(layers[0].variables)
    fused_kernels.fuse(layers)
    assert [type(layer) for layer in layers] == [FusedBatchNormalization, Other, keras.layers.Dense]
    assert all(a is b for a, b in zip(layers[0].variables, variables, strict=True))


def trained(optimizer, *, scaled=False, steps=5):
    """Variables and the optimizer's state after some steps, in a graph as in training."""
    values = [keras.Variable(v, name=f"v{len(v)}") for v in (IMAGES[0], SLOPE[0, 0, 0])]
    inner = optimizer
    if scaled:
        optimizer = keras.optimizers.LossScaleOptimizer(inner, initial_scale=2.0)
    optimizer.build(values)

    @tf.function
    def step(number):
        slopes = [tf.sin(number * (v.value + 1)) * 3 for v in values]
        optimizer.apply([s * 2 if scaled else s for s in slopes], values)

    for number in range(1, steps + 1):
        step(tf.constant(float(number)))
    names = [v.path.partition("/")[2] for v in inner.variables]
    return names, [v.numpy() for v in (*values, *inner.variables)]


@pytest.mark.parametrize(("options", "scaled"), [
    ({}, False), ({"beta_1": 0.5, "beta_2": 0.9, "epsilon": 1e-2}, False),
    ({"global_clipnorm": 1.0}, False), ({}, True),
], ids=["plain", "other constants", "clipped", "scaled loss"])  # fmt: skip
def test_adam_goes_the_same_way_and_keeps_the_same_state(options, scaled):
    adams = (made(learning_rate=0.05, **options) for made in (keras.optimizers.Adam, FusedAdam))
    (names, wanted), (found_names, found) = (trained(adam, scaled=scaled) for adam in adams)
    assert found_names == names
    same(found, wanted)
    assert not np.allclose(found[0], IMAGES[0], atol=0.1)


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_adam_takes_the_sparse_gradients_of_an_embedding_and_any_precision(kind):
    rows = []
    for made in (keras.optimizers.Adam, FusedAdam):
        value = keras.Variable(np.ones((4, 2)), dtype=kind)
        optimizer = made(0.1)
        optimizer.build([value])
        for chosen in ([0, 2], [2, 2]):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.gather(value.value, chosen) ** 2)
            [slope] = tape.gradient(loss, [value.value])
            assert isinstance(slope, tf.IndexedSlices)
            if made is keras.optimizers.Adam:  # which would square each of a row's parts by itself
                slope = tf.convert_to_tensor(slope)
            optimizer.apply([slope], [value])
        rows.append(value.numpy())
    same(rows[1:], rows[:1])
    assert rows[1].dtype == kind and (rows[1][[0, 2]] < 1).all() and (rows[1][[1, 3]] == 1).all()


def test_a_new_learning_rate_counts_from_the_next_step():
    optimizer, value = FusedAdam(0.0), keras.Variable(np.ones(3, np.float32))
    optimizer.build([value])
    optimizer.apply([tf.ones(3)], [value])
    assert (value.numpy() == 1).all()
    optimizer.learning_rate = 0.5
    optimizer.apply([tf.ones(3)], [value])
    assert (value.numpy() < 0.6).all()
