"""A site's training: FLARE's Client API and plain Keras."""

import keras
import numpy as np
import nvflare.client as flare
from nvflare.app_common.abstract.fl_model import FLModel

from surgical_aggregation.aggregation.metrics import auroc
from surgical_aggregation.wire import variables as wire

SITES = {"north": ("Circle", "Square"), "south": ("Circle", "Cross")}  # in a network: its own
SIDE = 12


def drawings(classes, seed, images=400):
    """Noisy images (n, SIDE, SIDE, 1) with random shapes, and labels (n, classes) of some."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
    shapes = {
        "Circle": abs(np.hypot(x, y) - 4) < 0.7,
        "Cross": (abs(x - y) < 1) | (abs(x + y) < 1),
        "Square": abs(np.maximum(abs(x), abs(y)) - 5) < 0.6,
    }
    there = random.random((images, len(shapes))) < 0.4
    pixels = there @ np.stack([shape.ravel() for shape in shapes.values()]).astype(float)
    pixels = pixels.reshape(images, SIDE, SIDE, 1) + random.normal(0, 1, (images, SIDE, SIDE, 1))
    own = [list(shapes).index(name) for name in classes]
    return pixels.astype(np.float32), there[:, own].astype(np.float32)


def network(classes):
    """A small network; its last layer is called "head" and has a unit for each class."""
    image = keras.Input((SIDE, SIDE, 1))
    x = keras.layers.Conv2D(8, 5, activation="relu", name="conv")(image)
    x = keras.layers.Flatten(name="flat")(x)
    x = keras.layers.Dense(16, activation="relu", name="features")(x)
    outputs = keras.layers.Dense(classes, activation="sigmoid", name="head")(x)
    return keras.Model(image, outputs)


def load_model(model, variables, classes):
    """Load the received body and columns; the site's other columns are unchanged."""
    body, columns = wire.split(variables)
    kernel, bias = model.get_layer("head").get_weights()
    for name, (column, scalar) in columns.items():
        kernel[:, classes.index(name)], bias[classes.index(name)] = column, scalar[0]
    model.get_layer("head").set_weights([kernel, bias])
    for variable in model.weights:
        if variable.path in body:
            variable.assign(body[variable.path])


def main():
    """Train every model received, until FLARE stops."""
    flare.init()
    site = flare.get_site_name()
    classes = SITES[site]
    keras.utils.set_random_seed(sorted(SITES).index(site))
    model = network(len(classes))
    model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="binary_crossentropy")
    images, labels = drawings(classes, seed=sorted(SITES).index(site))
    while flare.is_running():
        received = flare.receive()
        load_model(model, received.params, classes)
        measured = float(np.mean(auroc(labels, model.predict(images, verbose=0))))
        print(f"{site}, round {received.current_round}: AUROC {measured:.3f}")
        model.fit(images, labels, batch_size=32, epochs=2, verbose=0)
        variables = {v.path: v.numpy() for v in model.weights}
        sent = wire.label(variables, classes)
        flare.send(FLModel(params=sent, metrics={"auroc": measured}))


if __name__ == "__main__":
    main()
