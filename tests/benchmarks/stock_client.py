"""A site as FLARE's users write it: Keras and the Client API, without anything of the method.

What a site does beside its messages is the same as in `KerasExecutor`: its threads, its images, its
network, Adam, one pass over the training images, and a measurement of the received model.
"""

import sys

import nvflare.client as flare
from nvflare.apis.fl_constant import FLMetaKey

from surgical_aggregation.site.training.tensorflow_setup import configure, shared_cores


def main(table, sites):
    configure(shared_cores(int(sites)), seed=0)
    import keras
    from drawn_site import DrawnSite

    flare.init()
    site = DrawnSite(flare.get_site_name(), table)
    model = site.model()
    model.compile(
        optimizer=keras.optimizers.Adam(5e-5),
        loss="binary_crossentropy",
        metrics=[keras.metrics.AUC(multi_label=True, num_labels=len(site.classes))],
    )
    train, validation = site.data("train", training=True), site.data("validation")
    while flare.is_running():
        received = flare.receive()
        for name, weights in received.params.items():
            model.get_layer(name).set_weights(weights)
        measured = model.evaluate(validation, verbose=0, return_dict=True)
        model.fit(train, shuffle=False, verbose=0)
        trained = {layer.name: layer.get_weights() for layer in model.layers if layer.weights}
        flare.send(
            flare.FLModel(
                params=trained,
                metrics=measured,
                meta={FLMetaKey.NUM_STEPS_CURRENT_ROUND: len(train)},
            )
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
