"""A site whose model is constants, so that any size of it can be checked number by number.

Every variable is filled with one value. A site adds its own step to all of them and sends them
back; so the model of a round is known from the constants of the round before and the names of the
sites whose results were averaged. What a site received goes to a small file, for the check.
"""

import hashlib
import json
import time
from pathlib import Path

import numpy as np
from nvflare.apis.dxo import DXO, DataKind, MetaKey
from nvflare.apis.event_type import EventType
from nvflare.apis.executor import Executor
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import make_reply
from nvflare.app_common.app_constant import AppConstants

from cxr_study.common.files import atomic_write
from surgical_aggregation.wire import flare_internals
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import MODEL_ROUND

FEATURES = 64


def drawn(*of):
    """A number in [0, 1) that depends on its arguments alone."""
    return int.from_bytes(hashlib.sha256(repr(of).encode()).digest()[:4], "big") / 2**32


def step(site, round_):
    """What a site adds to every value in a round."""
    return np.float32(0.01 * (drawn("step", site, round_) - 0.5))


def first_column(site, label):
    """The value of a column that the server does not have yet."""
    return np.float32(drawn("column", site, label))


class ConstantExecutor(Executor):
    """Add the site's step; fail in some rounds, as drawn.

    Args:
        site: The site's name.
        table: Json file of the sites, as of `TinySite`.
        folder: For what was received.
        absent: Share of the rounds in which the site fails.
        seconds: That the first site of the table trains; the others wait for it, and ask.
    """

    def __init__(
        self, site: str, table: str, folder: str, absent: float = 0.0, seconds: float = 0.0
    ):
        super().__init__()
        self.site, self.table, self.folder = site, table, folder
        self.absent, self.seconds = absent, seconds

    def handle_event(self, event_type, fl_ctx):
        if event_type == EventType.START_RUN:
            flare_internals.forget_sent_messages()

    def execute(self, task_name, shareable, fl_ctx, abort_signal):
        sites = json.loads(Path(self.table).read_text())
        classes = sites[self.site]["classes"]
        variables = wire.weights(shareable).data
        received = {name: _constant(value) for name, value in variables.items()}
        foreign = set(wire.classes_of(variables)) - set(classes)
        training = task_name == "train"
        round_ = shareable.get_header(AppConstants.CURRENT_ROUND if training else MODEL_ROUND)
        what = {"received": received, "foreign": sorted(foreign)}
        if task_name in ("train", "validate"):  # the best model is that of a round
            atomic_write(Path(self.folder) / f"{round_}-{self.site}.json", json.dumps(what))
        if not training:
            return DXO(DataKind.METRICS, data=_metrics(classes)).to_shareable()
        if self.site == min(sites):
            time.sleep(self.seconds)
        if drawn("absent", self.site, round_) < self.absent:
            return make_reply(ReturnCode.EXECUTION_EXCEPTION)
        by = step(self.site, round_)
        for value in variables.values():
            value += by
        for label in classes:
            for part, shape in (("kernel", (FEATURES,)), ("bias", (1,))):
                name = f"head/{label}/{part}"
                if name not in variables:
                    start = first_column(self.site, label)
                    variables[name] = np.full(shape, start + by, np.float32)
        meta = {MetaKey.INITIAL_METRICS: _metrics(classes), MetaKey.NUM_STEPS_CURRENT_ROUND: 100}
        return DXO(DataKind.WEIGHTS, data=variables, meta=meta).to_shareable()


def _constant(value):
    """The one value of an array; None where there are several."""
    return float(value.flat[0]) if value.min() == value.max() else None


def _metrics(classes):
    return {"bce": 0.5, "auroc": 0.5, **{f"auroc/{name}": 0.5 for name in classes}}
