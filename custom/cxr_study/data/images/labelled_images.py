"""Images with what is known of them, as rows of a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd


@dataclass(frozen=True, eq=False)
class Images:
    """Decoded images of a site, with what is known of each.

    Attributes:
        table: A row per image, with a RangeIndex: a label table, or labels alone.
        pixels: uint8 (m, side, side), memory-mapped: the store.
        rows: Row of `pixels` of each image, shape (n,), int64.
        site: Whose they are; "": several sites'.
        labelled: Classes that the site labels itself; those of other columns are the truth's.
    """

    table: pd.DataFrame
    pixels: np.ndarray
    rows: np.ndarray
    site: str = ""
    labelled: frozenset[str] = frozenset()

    def of(self, split: str) -> Images:
        """Those of a split."""
        chosen = np.flatnonzero(self.table["split"] == split)
        table = self.table.iloc[chosen].reset_index(drop=True)
        return replace(self, table=table, rows=self.rows[chosen])

    def labels(self, classes: Sequence[str]) -> np.ndarray:
        """Labels of some classes, float64 (n, classes); NaN where nobody knows."""
        return self.table.reindex(columns=list(classes)).to_numpy(float)
