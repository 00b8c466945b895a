"""The `Site` of a hospital with chest X-rays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cxr_study.data.images.image_store import Images
from cxr_study.data.labels.label_table import classes as class_columns
from cxr_study.data.labels.vocabulary import UNION_CLASSES
from cxr_study.data.sites.site_data import SiteLabels, load_images, load_labels
from cxr_study.data.sites.site_file import find_site_file, read_site_file
from cxr_study.training.augmentation import augmentation_ranges
from cxr_study.training.backbones import normalisation
from cxr_study.training.network import Network
from surgical_aggregation.site.contract.site import Site, SiteError, Split
from surgical_aggregation.site.contract.site_policy import withheld

if TYPE_CHECKING:  # TensorFlow must not start before its threads are set
    import keras
    import tensorflow as tf

__all__ = ["ChestXraySite"]

OTHER_CLASSES = {"absent": 0.0, "unknown": np.nan}
"""Setting `other_classes` -> label of a class of the union that the site does not label."""


class ChestXraySite(Site):
    """Classes, network and data of one hospital.

    `backbone`, `image_size` and `hidden` must be the same at every site. Nothing is read before the
    first access to classes, labels or data.

    Args:
        site: Name of the site; its site file is <sites>/<site>.yaml.
        sites: Folder of site files, at the site; see `find_site_file`.
        backbone: See `network.build`. Default small_densenet.
        image_size: Side of the input, pixels. Default 64.
        hidden: See `network.build`. Default 0.
        batch_size: Images per batch. Default 64, as in the papers.
        augmentation: Of the training images; one of `augmentation.AUGMENTATIONS`.
        other_classes: How classes of the union are treated that the site does not label. "omit"
            (default): the head has only the site's own classes (surgical aggregation, personalised
            heads). With the other values the head has a unit for each class of the union; classes
            that the site does not label count as negative in training and validation, "absent"
            (vanilla FL), or are left out of loss and metrics, "unknown" (partial loss). On the test
            split they are left out.
        union: Classes of the union, separated by commas. Default "": those of NIH and CheXpert.
        seed: Of shuffling and augmentation, 0 or more.

    Example:
        >>> site = ChestXraySite("nih", sites="sites")  # doctest: +SKIP
        >>> site.classes  # doctest: +SKIP
        ('Atelectasis', 'Cardiomegaly', ...)
    """

    def __init__(
        self,
        site: str,
        sites: str | None = None,
        backbone: str = "small_densenet",
        image_size: int = 64,
        hidden: int = 0,
        batch_size: int = 64,
        augmentation: str = "radiology",
        other_classes: str = "omit",
        union: str = "",
        seed: int = 0,
    ):
        super().__init__()
        self.site = site
        self.sites = sites
        self.backbone = backbone
        self.image_size = image_size
        self.hidden = hidden
        self.batch_size = batch_size
        self.augmentation = augmentation
        self.other_classes = other_classes
        self.union_head = other_classes != "omit"
        self.union = union
        self.seed = seed

    @property
    def classes(self) -> tuple[str, ...]:
        """Classes of the head: the site's own, or those of the union.

        Raises:
            SiteError: `other_classes` has an unknown value, or the union lacks a class that the
                site labels.
            ValueError: The site file or a file that it names is not usable.
        """
        labelled = tuple(class_columns(self.labels.table))
        if not self.union_head:
            return labelled
        if self.other_classes not in OTHER_CLASSES:
            raise SiteError(
                f"other_classes must be one of {('omit', *OTHER_CLASSES)}; got "
                f"{self.other_classes!r}."
            )
        union = _names(self.union) if self.union else UNION_CLASSES
        strange = [name for name in labelled if name not in union]
        if strange:  # a withheld class must not show in whether the site participates
            train = self.labels.table.query("split == 'train'")[list(labelled)]
            stay = withheld(self.policy, labelled, lambda: train.to_numpy(np.float32))
            strange = [name for name in strange if name not in stay]
        if strange:
            whose = "that the job names" if self.union else "of NIH and CheXpert"
            raise SiteError(
                f"{self._file}: a union head predicts the {len(union)} classes {whose}; the site "
                f"also labels {', '.join(strange)}. Name the classes to use with the key "
                "'classes', or all sites' classes with the job's setting 'union'."
            )
        return union

    @property
    def network_facts(self) -> Mapping[str, Any]:
        """Backbone, image size, hidden units and input, for the manifest; see `Network.facts`."""
        return self._network.facts()

    def model(self) -> keras.Model:
        """Build the network, with an output per class; random weights."""
        return self._network.build(len(self.classes))

    @property
    def _network(self) -> Network:
        return Network(self.backbone, self.image_size, self.hidden)

    def labelled_images(self, split: Split) -> Images:
        """Images of a split with the labels of `classes`, in this order; decoded once and cached.

        Args:
            split: "train", "validation" or "test".

        Raises:
            SiteError: The split is empty.
        """
        images = self._images.of(split)
        if images.table.empty:
            raise SiteError(
                f"{self._file}: the {split} split needs at least one image; it has none. "
                f"Recreate the split file: surgagg data split {self._file}"
            )
        # "absent" is a way to train: on the test split nothing is known of other sites' classes.
        fill = np.nan if split == "test" else OTHER_CLASSES.get(self.other_classes)
        table = images.table.reindex(columns=list(self.classes), fill_value=fill)
        return replace(images, table=table)

    @cached_property
    def training_labels(self) -> NDArray[np.float32]:
        """Labels of the training split, float32 (images, classes); NaN: not known. See `Site`."""
        return self.labelled_images("train").table.to_numpy(np.float32)

    def data(self, split: Split, *, training: bool = False, first_pass: int = 0) -> tf.data.Dataset:
        """Batches of a split; arguments and result as in `Site.data`."""
        return self.batches(self.labelled_images(split), training=training, first_pass=first_pass)

    def batches(self, images: Images, *, training: bool, first_pass: int) -> tf.data.Dataset:
        """Batches of any images with the site's settings.

        Args:
            images: With a table that has a column per class, as from `labelled_images`.
            training: Whether images are shuffled and augmented.
            first_pass: Number of the first pass; see `input_pipeline.dataset`.

        Raises:
            ValueError: The augmentation is unknown.
        """
        from cxr_study.training.input_pipeline import dataset

        augmentation_ranges(self.augmentation)  # an unknown one is refused also without training
        return dataset(
            images.pixels,
            images.table.to_numpy(np.float32),
            rows=images.rows,
            batch_size=self.batch_size,
            shuffle_seed=self.seed if training else None,
            augmentation=self.augmentation if training else "none",
            seed=self.seed,
            first_pass=first_pass,
            normalisation=normalisation(self.backbone),
        )

    @cached_property
    def _file(self) -> Path:
        """Path of the site file, which exists."""
        return find_site_file(self.site, self.sites, self.policy, self.identity)

    @cached_property
    def labels(self) -> SiteLabels:
        """The site's labels, as its site file defines them."""
        return load_labels(read_site_file(self._file))

    @cached_property
    def _images(self) -> Images:
        return load_images(self.labels, self.image_size)


def _names(union: str) -> tuple[str, ...]:
    """Class names of the setting `union`; `SiteError` if one is empty or repeated."""
    names = tuple(name.strip() for name in union.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise SiteError(f"union needs different class names, by comma; got {union!r}.")
    return names
