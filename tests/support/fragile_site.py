"""A site whose disk has a bad sector; apart from `faults`, as its import replaces Keras."""

import itertools

from faults import strikes
from numpy_model import Batches
from numpy_site import NumpySite


class FragileSite(NumpySite):
    """A site one of whose images cannot be read, in the middle of the second of a round's passes.

    Args:
        site: Its name.
        table: See `TinySite`.
        plan: "site:round:image" items.
        folder: Where marks of what has struck are kept.
        epochs: Passes of a round.
    """

    def __init__(self, site: str, table: str, plan: list, folder: str, epochs: int):
        super().__init__(site, table)
        self.plan = plan
        self.folder = folder
        self.epochs = epochs

    def data(self, split, *, training=False, first_pass=0):
        whole = super().data(split, training=training, first_pass=first_pass)
        if not training:
            return whole
        passes = itertools.count(first_pass)

        def batches():
            round_, epoch = divmod(next(passes), self.epochs)
            for number, batch in enumerate(whole):
                if epoch == 1 and number == 1:
                    if strikes(self.plan, self.folder, self.site, round_, ["image"]):
                        raise OSError("image 00000013_004.png is truncated")
                yield batch

        return Batches(batches)
