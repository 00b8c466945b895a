"""Several hospitals' images in one place: the site that centralised training pretends there is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from cxr_study.data.images.labelled_images import pool
from cxr_study.data.sites.site_data import check_disjoint
from cxr_study.training.chest_xray_site import ChestXraySite
from surgical_aggregation.site.contract.site import Site, SiteError, Split

if TYPE_CHECKING:  # TensorFlow must not start before its threads are set
    import keras
    import tensorflow as tf


class PooledSite(Site):
    """All images of several sites, shuffled together; they stay where they are decoded.

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
            SplitError: Members share a patient, who might be in the one's training split and in
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

    def model(self) -> keras.Model:
        """The members' network."""
        return self.members[0].model()

    def data(self, split: Split, *, training: bool = False, first_pass: int = 0) -> tf.data.Dataset:
        """Batches of the members' splits; without training, one member after the other."""
        images = pool([member.labelled_images(split) for member in self.members])
        return self.members[0].batches(images, training=training, first_pass=first_pass)
