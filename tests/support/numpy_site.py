"""The tiny site without TensorFlow, for tests of what happens around its training.

A configuration that names this module replaces the Keras model by the NumPy one in that site's
process, which then starts in a third of the time. All else is as it is with Keras.
"""

import itertools
import sys
from types import SimpleNamespace

import numpy as np
from nvflare.apis.event_type import EventType

from faults import strikes
from numpy_model import ArraySite, Batches, LocalModel
from surgical_aggregation.site import class_declaration, site_answer
from surgical_aggregation.site.training import tensorflow_setup
from surgical_aggregation.wire import versions

__all__ = ["LocalModel", "NumpySite", "balanced_weights"]

balanced_weights = None  # of the loss; not used here


class NumpySite(ArraySite):
    """The site that a json table describes; see `tiny_site`.

    What its entry has in "pretends" is so in its process: "version" of this software, "free_disk"
    bytes, "damaged" labels, or a "layer" more in its network, of this name.

    By a plan of "site:round:image" items (see `faults`), one of its images is unreadable, in the
    middle of the second of a round's passes (`epochs`).
    """

    def __init__(self, site: str, table: str, plan: list = (), folder: str = "", epochs: int = 1):
        super().__init__(site, table)
        self.plan, self.folder, self.epochs = plan, folder, epochs

    def handle_event(self, event_type, fl_ctx):
        if event_type != EventType.ABOUT_TO_START_RUN:
            return
        pretends = self._entry.get("pretends", {})
        if "version" in pretends:
            versions_sent = {versions.OURS: pretends["version"]} if pretends["version"] else {}
            class_declaration.installed_versions = lambda: versions_sent
        if "free_disk" in pretends:
            site_answer.shutil = SimpleNamespace(disk_usage=lambda _: SimpleNamespace(free=9))
        if "damaged" in pretends:
            raise_later = OSError(f"/data/{self.site}.csv, row 7, is damaged")
            self.arrays = lambda split: (_ for _ in ()).throw(raise_later)

    @property
    def network_facts(self):
        return {"backbone": self._entry.get("pretends", {}).get("layer", "tiny")}

    def model(self):
        layer = self._entry.get("pretends", {}).get("layer")
        return super().model() | ({f"{layer}/kernel": np.ones(2)} if layer else {})

    def data(self, split, *, training=False, first_pass=0):
        whole = super().data(split, training=training, first_pass=first_pass)
        passes = itertools.count(first_pass)

        def batches():
            round_, epoch = divmod(next(passes), self.epochs)
            for number, batch in enumerate(whole):
                if training and (epoch, number) == (1, 1):
                    if strikes(self.plan, self.folder, self.site, round_, ["image"]):
                        raise OSError("image 00000013_004.png is truncated")
                yield batch

        return Batches(batches)


assert "tensorflow" not in sys.modules
for _name in ("local_model", "loss"):
    sys.modules[f"surgical_aggregation.site.training.{_name}"] = sys.modules[__name__]
tensorflow_setup.configure = lambda *_: False
