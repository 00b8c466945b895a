"""Results of a hostile site, which a client that follows no rules may send."""

import numpy as np
from nvflare.apis.dxo import from_shareable
from nvflare.apis.filter import Filter
from nvflare.apis.shareable import Shareable
from nvflare.app_common.np.np_downloader import ArrayDownloadable

from faults import ROUND, strikes

_PRODUCED = ArrayDownloadable.produce_item


class HostileResult(Filter):
    """A site's last filter, which sends something else in chosen rounds; needs `FaultyExecutor`.

    Args:
        site: The site it runs at.
        plan: "site:round:what" items; what is a name in `HOSTILE`.
        folder: Where marks of what has struck are kept.
    """

    def __init__(self, site: str, plan: list, folder: str):
        super().__init__()
        self.site = site
        self.plan = plan
        self.folder = folder

    def process(self, shareable, fl_ctx):
        ArrayDownloadable.produce_item = _PRODUCED
        round_ = fl_ctx.get_prop(ROUND)
        what = strikes(self.plan, self.folder, self.site, round_, HOSTILE)
        if what is None:
            return shareable
        return HOSTILE[what](shareable)


def _changed(change):
    def process(shareable):
        dxo = from_shareable(shareable)
        change(dxo.data)
        return dxo.update_shareable(shareable)

    return process


def _nan(data):
    data["dense/kernel"] = np.full_like(data["dense/kernel"], np.nan)


def _shape(data):
    data["dense/kernel"] = data["dense/kernel"][:, :-1].copy()


def _foreign(data):
    first = next(name for name in data if name.startswith("head/")).rpartition("/")[0]
    for part in ("kernel", "bias"):
        data[f"head/Pneumonia/{part}"] = data[f"{first}/{part}"]


def _truncated(data):
    for name in sorted(data)[1:]:
        del data[name]


def _corrupted(shareable):
    corrupted = Shareable()
    corrupted["DXO"] = b"\x00" * 64
    corrupted.set_header("task_name", "train")
    return corrupted


def _torn(shareable):
    """Arrays that the server fetches lack their last bytes."""
    ArrayDownloadable.produce_item = lambda self, index: _PRODUCED(self, index)[:-40]
    return shareable


HOSTILE = {
    "torn": _torn,
    "nan": _changed(_nan),
    "shape": _changed(_shape),
    "foreign": _changed(_foreign),
    "truncated": _changed(_truncated),
    "corrupted": _corrupted,
}
