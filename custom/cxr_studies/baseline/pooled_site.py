"""The images of several hospitals with chest X-rays, pooled for centralised training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pandas as pd

from cxr_study.data.images.image_store import Images
from cxr_study.data.sites.site_data import check_disjoint
from cxr_study.training.chest_xray_site import ChestXraySite
from surgical_aggregation.site.contract.site import Site, SiteError, Split

if TYPE_CHECKING:  # TensorFlow must not start before its threads are set
    import keras
    import tensorflow as tf


class PooledSite(Site):
    """All images of several sites, shuffled together, without copying them.

    Args:
        members: One or more, with the same classes: set their `other_classes` to "absent" or
            "unknown". Network, batch size, augmentation and seed are those of the first.
    """

    def __init__(self, members: Sequence[ChestXraySite]):
        super().__init__()
        self.members = members

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Classes of every member.

        Raises:
            SiteError: Members differ in classes.
            InputError: Members share a patient, who might be in the one's training split and in
                the other's test split.
        """
        check_disjoint(member.labels for member in self.members)
        first, *others = self.members
        for other in others:
            if other.classes != first.classes:
                raise SiteError(
                    f"pooled sites need the same classes; {first.site} has "
                    f"{', '.join(first.classes)}, {other.site} has {', '.join(other.classes)}. Set "
                    "other_classes to 'absent' or 'unknown'."
                )
        return first.classes

    @property
    def network_facts(self) -> Mapping[str, Any]:
        """Facts about the network, the same for all members; see `Site.network_facts`."""
        return self.members[0].network_facts

    def model(self) -> keras.Model:
        """A new Keras model of the members' network."""
        return self.members[0].model()

    def data(self, split: Split, *, training: bool = False, first_pass: int = 0) -> tf.data.Dataset:
        """Batches of the members' splits, shuffled together for training, else one after the other.

        Args:
            split: "train", "validation" or "test".
            training: Whether to shuffle and augment.
            first_pass: Number of the first pass over the data, which seeds order and augmentation.
        """
        images = pool([member.labelled_images(split) for member in self.members])
        return self.members[0].batches(images, training=training, first_pass=first_pass)


class ImageRows:
    """Arrays of images end to end, indexed like one array.

    Args:
        arrays: uint8 (n, side, side), one or more, of one side; may be memory-mapped.

    Raises:
        ValueError: The images differ in side.
    """

    def __init__(self, arrays: Sequence[np.ndarray | ImageRows]):
        sides = sorted({array.shape[1:] for array in arrays})
        if len(sides) != 1:
            raise ValueError(f"images of one side are needed; got {sides}.")
        self.arrays = tuple(arrays)

    @cached_property
    def starts(self) -> np.ndarray:
        """Row of the first image of each array."""
        return np.cumsum([0, *(len(array) for array in self.arrays[:-1])])

    @property
    def dtype(self) -> np.dtype:
        """Type of the pixels: uint8."""
        return self.arrays[0].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of all images as one array."""
        return (len(self), *self.arrays[0].shape[1:])

    def __len__(self) -> int:
        return sum(len(array) for array in self.arrays)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        """Copies of some rows, in that order; shape (rows, side, side)."""
        rows = np.asarray(rows)
        whose = np.searchsorted(self.starts, rows, side="right") - 1
        images = np.empty((len(rows), *self.shape[1:]), self.dtype)
        for index, (array, start) in enumerate(zip(self.arrays, self.starts, strict=True)):
            chosen = whose == index
            images[chosen] = array[rows[chosen] - start]
        return images


def pool(parts: Sequence[Images]) -> Images:
    """Concatenate images of one side and with the same columns, without copying a store.

    Args:
        parts: Images of several sites.

    Returns:
        Images whose table has the rows of all parts, and whose pixels are `ImageRows`.

    Raises:
        ValueError: The images differ in side.
    """
    pixels = ImageRows([part.pixels for part in parts])
    rows = [part.rows + start for part, start in zip(parts, pixels.starts, strict=True)]
    table = pd.concat([part.table for part in parts], ignore_index=True)
    return Images(table, cast(np.ndarray, pixels), np.concatenate(rows))
