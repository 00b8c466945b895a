"""The server's tasks for the tiny site "north", and what an executor makes of them."""

import numpy as np
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.signal import Signal
from nvflare.app_common.app_constant import AppConstants

from surgical_aggregation.site.site_state import site_folder
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import BEST_ROUND, CONTINUES, INITIAL_BODY, MODEL_ROUND
from tiny_site import FEATURES

TASKS = ("train", "validate", "test")


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
    """A column all of whose weights are one value."""
    return (np.full(FEATURES, value, np.float32), np.float32([value]))


COLUMNS = {"Nodule/Mass": column(2), "Edema": column(1)}


def carried_out(start, name, shareable, signal=None, **args):
    """What an executor that `start` starts with some arguments answers to a task."""
    executor, fl_ctx = start(**args)
    return executor.execute(name, shareable, fl_ctx, signal or Signal())


def weights(reply):
    """Variables by path that a reply carries."""
    return from_shareable(reply).data


def folder(fl_ctx):
    """Where the site keeps its state of the running job."""
    return site_folder(fl_ctx, fl_ctx.get_job_id())
