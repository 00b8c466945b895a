"""Sites of the comparisons with other code: random images and labels, a network by name."""

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from surgical_aggregation.site.contract.site import Site

FILES = {"train": "train", "validation": "validation", "test": "validation"}
"""Split -> its files' name."""


class DrawnSite(Site):
    """A site of a json file: name -> {"classes": [...], "folder": ...}, see `draw`."""

    def __init__(self, site: str, table: str):
        super().__init__()
        self.site = site
        self.table = table
        ask_as_in_production()

    @property
    def _entry(self):
        return json.loads(Path(self.table).read_text(encoding="utf-8"))[self.site]

    @property
    def classes(self):
        return tuple(self._entry["classes"])

    def model(self):
        from cxr_study.training.network import build

        entry = self._entry
        return build(
            entry["backbone"], len(self.classes), image_size=entry["side"], hidden=entry["hidden"]
        )

    def data(self, split, *, training=False, first_pass=0):
        from cxr_study.training.input_pipeline import dataset

        images, labels = arrays(self._entry["folder"], split)
        how = {"shuffle_seed": 0, "augmentation": self._entry["augmentation"]} if training else {}
        return dataset(images, labels, batch_size=64, first_pass=first_pass, **how)

    def labels(self, split):
        """Labels of a split, float32 (n, classes)."""
        return arrays(self._entry["folder"], split)[1]


def ask_as_in_production():
    """Let FLARE's simulator wait 0.1 s before a site asks again for a task, not half a second."""
    worker = sys.modules["__main__"]
    if hasattr(worker, "FETCH_TASK_RUN_RETRY"):
        waits = {"sleep": lambda seconds: time.sleep(min(seconds, 0.1)), "time": time.time}
        worker.time = SimpleNamespace(**waits)


def arrays(folder, split):
    """Images uint8 (n, side, side) and labels float32 (n, classes) of a split."""
    return tuple(
        np.load(Path(folder, f"{FILES[split]}_{what}.npy")) for what in ("images", "labels")
    )


def draw(folder, *, classes, train, validation, side, **network):
    """Draw a site's images; returns its entry of the table. `network`: see `network.build`."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(len(classes))
    for split, number in (("train", train), ("validation", validation)):
        images = rng.integers(0, 256, (number, side, side), np.uint8)
        labels = (rng.random((number, len(classes))) < 0.3).astype(np.float32)
        np.save(folder / f"{split}_images.npy", images)
        np.save(folder / f"{split}_labels.npy", labels)
    return {"classes": list(classes), "folder": str(folder), "side": side, **network}


def network(classes, **how):
    """The network of the sites, for a server that keeps its model in Keras."""
    from cxr_study.training.network import build
    from surgical_aggregation.site.training.tensorflow_setup import import_quietly

    import_quietly()
    return build(how["backbone"], classes, image_size=how["side"], hidden=how["hidden"])
