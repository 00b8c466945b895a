"""A client-side result filter that breaks a site's result in chosen rounds."""

import itertools
from pathlib import Path

import numpy as np
from nvflare.apis.dxo import from_shareable
from nvflare.apis.filter import Filter

from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save


class Misbehave(Filter):
    """Put it behind the job's own filters.

    Args:
        site: The site it runs at.
        plan: "site:round:what" items; what is "crash", "nan", "huge" or "foreign".
        folder: Where every good result is kept, as <site>-<round>.npz.
    """

    def __init__(self, site: str, plan: list, folder: str):
        super().__init__()
        self.site = site
        self.plan = plan
        self.folder = folder
        self._rounds = itertools.count()  # a site's results come in round order

    def process(self, shareable, fl_ctx):
        current_round = next(self._rounds)
        kinds = ("crash", "nan", "huge", "foreign")
        what = {f"{self.site}:{current_round}:{w}": w for w in kinds}
        fault = next((w for key, w in what.items() if key in self.plan), None)
        dxo = from_shareable(shareable)
        if fault == "crash":
            raise OSError("the disk is gone")
        if fault == "nan":
            dxo.data["dense/kernel"] = np.full_like(dxo.data["dense/kernel"], np.nan)
        if fault == "huge":
            dxo.data["dense/kernel"] = np.full_like(dxo.data["dense/kernel"], 3e38)
        if fault == "foreign":
            kernel = next(
                v for name, v in dxo.data.items() if name.endswith("/kernel") and v.ndim == 1
            )
            dxo.data["head/Support Devices/kernel"] = kernel
            dxo.data["head/Support Devices/bias"] = np.zeros(1, np.float32)
        if fault is None:
            save(Checkpoint(dict(dxo.data)), Path(self.folder) / f"{self.site}-{current_round}.npz")
        return dxo.update_shareable(shareable)
