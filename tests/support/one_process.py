"""A federation in one process: executor, filter, FLARE's wire, aggregator and merge, all real."""

from dataclasses import dataclass, field

import numpy as np
from nvflare.apis.event_type import EventType
from nvflare.apis.signal import Signal
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.fuel.utils import fobs
from nvflare.private.fed.utils.fed_utils import fobs_initialize

from flare import Engine, context, site_context
from surgical_aggregation.server.access.class_filters import SelectHead
from surgical_aggregation.server.models.aggregator import SurgicalAggregator
from surgical_aggregation.server.models.global_model import GlobalModel, MergeIntoGlobalModel
from surgical_aggregation.site.contract.site import Site
from surgical_aggregation.site.executor import KerasExecutor
from surgical_aggregation.site.label_head import LabelHead
from surgical_aggregation.site.training.training_options import TrainingOptions
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import MODEL_ROUND, REFUSAL

SITES = {"north": ("Edema", "Nodule/Mass"), "south": ("Edema", "Fracture")}
IMAGES = 8


class NetworkSite(Site):
    """One of `SITES`, with any network (`build`, of a number of classes) and a few random images.

    `shape` is an image's.
    """

    def __init__(self, site, build, shape):
        super().__init__()
        self.site, self.build, self.shape = site, build, shape

    @property
    def classes(self):
        return SITES[self.site]

    def model(self):
        return self.build(len(self.classes))

    def data(self, split, *, training=False, first_pass=0):
        import tensorflow as tf

        rng = np.random.default_rng([len(self.site), *map(ord, self.site + split)])
        images = rng.normal(size=(IMAGES, *self.shape)).astype(np.float32)
        labels = (np.arange(IMAGES)[:, None] % 3 == np.arange(len(self.classes))).astype("f4")
        return tf.data.Dataset.from_tensor_slices((images, labels)).batch(IMAGES // 2)


def executor_with(arguments):
    """The executor with its own arguments and with options of the training, given as one dict."""
    options = TrainingOptions.__dataclass_fields__.keys() & arguments.keys()
    own = {name: value for name, value in arguments.items() if name not in options}
    return KerasExecutor(training={name: arguments[name] for name in options}, **own)


@dataclass
class Round:
    """What became of a round; of sites by name."""

    model: GlobalModel  # that it made
    received: dict = field(default_factory=dict)  # variables of the task
    sent: dict = field(default_factory=dict)  # variables of the result, as they arrived
    trained: dict = field(default_factory=dict)  # all variables by path after training
    refused: dict = field(default_factory=dict)  # why the result was refused


class OneProcess:
    """Server and sites without a FLARE run, from an initial body on.

    `build` and `shape`: see `NetworkSite`; `folder`: of the sites' states; `optimizer`: the
    server's; `arguments`: further ones of the executor.
    """

    def __init__(self, initial, build, shape, folder, strategy, *, optimizer="none", **arguments):
        fobs_initialize()
        self.model = GlobalModel(initial.variables, initial.manifest)
        self.aggregator = SurgicalAggregator(strategy)
        self.merge = MergeIntoGlobalModel(optimizer)
        self.round = 0
        loaded = context(model=self.model)
        self.aggregator.handle_event(AppEventType.INITIAL_MODEL_LOADED, loaded)
        self.sites = {}
        training = {"strategy": strategy, "warmup_epochs": 1, "learning_rate": 1e-3, **arguments}
        for name in SITES:
            engine = Engine(folder / name, site=NetworkSite(name, build, shape))
            fl_ctx = site_context(name, engine)
            executor = executor_with(training)
            executor.handle_event(EventType.START_RUN, fl_ctx)
            self.sites[name] = (executor, fl_ctx)

    def train(self):
        at = {"current_round": self.round, "model": self.model}
        done = Round(self.model)
        for name, (executor, fl_ctx) in self.sites.items():
            server = context(name, SITES[name], **at)
            task = self.task(server)
            task.set_header(AppConstants.CURRENT_ROUND, self.round)
            done.received[name] = dict(wire.weights(task).data)
            reply = executor.execute("train", task, fl_ctx, Signal())
            done.trained[name] = executor._tasks.training.variables()
            arrived = fobs.loads(fobs.dumps(LabelHead().process(reply, fl_ctx)))
            arrived.add_cookie(AppConstants.CONTRIBUTION_ROUND, self.round)
            done.sent[name] = dict(wire.result(arrived).data)
            if not self.aggregator.accept(arrived, server):
                done.refused[name] = server.get_prop(REFUSAL)["reason"]
        if len(done.refused) < len(SITES):
            averaged = self.aggregator.aggregate(context(**at))
            learnable = self.merge.shareable_to_learnable(averaged, context(**at))
            self.model = done.model = GlobalModel.from_learnable(learnable)
        self.aggregator.reset(context(**at))
        self.round += 1
        return done

    def evaluate(self):
        """Site -> its variables by path when it has measured the model."""
        found = {}
        for name, (executor, fl_ctx) in self.sites.items():
            task = self.task(context(name, SITES[name], current_round=9, model=self.model))
            task.set_header(MODEL_ROUND, self.round)
            executor.execute("validate", task, fl_ctx, Signal())
            found[name] = executor._tasks.training.variables()
        return found

    def task(self, fl_ctx):
        """A site's task with the model, as it arrives there."""
        task = self.merge.learnable_to_shareable(self.model.to_learnable(), fl_ctx)
        return fobs.loads(fobs.dumps(SelectHead().process(task, fl_ctx)))
