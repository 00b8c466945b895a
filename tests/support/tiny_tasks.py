"""The server's tasks for the tiny site "north", and what an executor makes of them."""

import numpy as np
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.signal import Signal
from nvflare.app_common.app_constant import AppConstants

from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.site.site_memory import load_state, site_folder
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import BEST_ROUND, CONTINUES, INITIAL_BODY, MODEL_ROUND
from tiny_site import FEATURES

TASKS = ("train", "validate", "test", "refit")


def task(body, columns=None, header=None, round_=3, best=None, continues=None, model=None):
    """A task with a model, and the headers that have a value.

    An evaluation's model is that of round `model`; its `round_` is None.
    """
    shareable = DXO(DataKind.WEIGHTS, data=wire.join(body, columns or {})).to_shareable()
    headers = {
        INITIAL_BODY: header, BEST_ROUND: best, CONTINUES: continues, MODEL_ROUND: model,
    }  # fmt: skip
    for name, value in {**headers, AppConstants.CURRENT_ROUND: round_}.items():
        if value is not None:
            shareable.set_header(name, value)
    return shareable


def column(value):
    return (np.full(FEATURES, value, np.float32), np.float32([value]))


COLUMNS = {"Nodule/Mass": column(2), "Edema": column(1)}


def weights(reply):
    return from_shareable(reply).data


def folder(fl_ctx):
    return site_folder(fl_ctx, fl_ctx.get_job_id())


class Process:
    """A process of the site: its tasks, and what it has on disk."""

    def __init__(self, start, body, **args):
        self.body = body
        self.executor, self.fl_ctx = start(**args)
        self.folder = folder(self.fl_ctx)

    def run(self, name, columns=COLUMNS, signal=None, **facts):
        shareable = task(self.body, columns, **{"round_": None, **facts})
        return self.executor.execute(name, shareable, self.fl_ctx, signal or Signal())

    def sent(self, name="train", columns=COLUMNS, **facts):
        known = {"round_": 3} if name == "train" else {"model": 3}
        return from_shareable(self.run(name, columns, **{**known, **facts}))

    def train(self, round_, columns=COLUMNS, **facts):
        return self.run("train", columns, round_=round_, **facts)

    def personal(self):
        state = load_state(self.folder)[0].training
        own = {n: v for n, v in state.items() if n.startswith("personal/")}
        return {name.removeprefix("personal/"): value for name, value in own.items()}

    def model(self, which):
        return load(self.folder / f"site_{which}.npz")
