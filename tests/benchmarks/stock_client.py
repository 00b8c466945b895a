"""A site in FLARE's terms: an executor around Keras, without anything of the method.

What it does beside its messages is the same as in `KerasExecutor`: its threads, its images, its
network, Adam, one pass over the training images, and a measurement of the received model. FLARE's
Client API would be slower: it looks for a task and for its result twice a second.
"""

from drawn_site import DrawnSite
from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.app_opt.tf.utils import flat_layer_weights_dict, unflat_layer_weights_dict

from surgical_aggregation.aggregation.metrics import named
from surgical_aggregation.site.training.tensorflow_setup import configure, shared_cores


class StockExecutor(Executor):
    def __init__(self, table: str, sites: int):
        super().__init__()
        self.table = table
        self.sites = sites

    def handle_event(self, event_type, fl_ctx):
        if event_type == EventType.START_RUN:
            configure(shared_cores(self.sites), seed=0)
            import keras

            site = DrawnSite(fl_ctx.get_identity_name(), self.table)
            self._train, self._validation = (
                site.data("train", training=True),
                site.data("validation"),
            )
            self._model = site.model()
            self._model.compile(keras.optimizers.Adam(5e-5), "binary_crossentropy")
            self._classes, self._labels = site.classes, site.labels("validation")

    def execute(self, task_name, shareable, fl_ctx, abort_signal):
        for name, weights in unflat_layer_weights_dict(from_shareable(shareable).data).items():
            self._model.get_layer(name).set_weights(weights)
        predicted = self._model.predict(self._validation, verbose=0)
        measured = named(self._classes, self._labels, predicted)
        self._model.fit(self._train, shuffle=False, verbose=0)
        trained = {layer.name: layer.get_weights() for layer in self._model.layers}
        meta = {
            MetaKey.NUM_STEPS_CURRENT_ROUND: len(self._train),
            MetaKey.INITIAL_METRICS: measured,
        }
        return DXO(DataKind.WEIGHTS, flat_layer_weights_dict(trained), meta).to_shareable()
