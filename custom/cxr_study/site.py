"""A hospital of the chest X-ray study: what its site file says, as a `Site`."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cxr_study import progress
from cxr_study.embedded import embedded_study
from cxr_study.label_table import classes as class_columns
from cxr_study.site_data import SiteImages, SiteLabels, load_images, load_labels
from cxr_study.site_file import read_site_file
from cxr_study.vocabulary import UNION_CLASSES
from surgical_aggregation.site import Site, SiteError, Split

if TYPE_CHECKING:  # TensorFlow must not start before its threads are set
    import keras
    import tensorflow as tf


class ChestXraySite(Site):
    """Classes, model and data of one hospital.

    Args:
        site: Name of the site; its site file is <sites>/<site>.yaml.
        sites: Folder of site files, at the site. Default None: the embedded phantom study, made on
            first use, whose sites are "nih" and "chexpert".
        backbone: See `model.build`; the same at every site. Default "small_densenet".
        image_size: Side of the input, pixels; the same at every site. Default 64.
        hidden: See `model.build`; the same at every site. Default 0.
        batch_size: Default 64 (the papers).
        augment: Augment the training images. Default True.
        union_head: Predict all classes of the union, taking those that the site does not label as
            absent: the control that shows what surgical aggregation is for. Default False.
        seed: Of shuffling and augmentation. Default 0.
    """

    def __init__(
        self,
        site: str,
        sites: str | None = None,
        backbone: str = "small_densenet",
        image_size: int = 64,
        hidden: int = 0,
        batch_size: int = 64,
        augment: bool = True,
        union_head: bool = False,
        seed: int = 0,
    ):
        super().__init__()
        self.site = site
        self.sites = sites
        self.backbone = backbone
        self.image_size = image_size
        self.hidden = hidden
        self.batch_size = batch_size
        self.augment = augment
        self.union_head = union_head
        self.seed = seed

    @property
    def classes(self) -> tuple[str, ...]:
        """Classes of the site file, or of the union."""
        held = tuple(class_columns(self._labels.table))
        if not self.union_head:
            return held
        strange = [name for name in held if name not in UNION_CLASSES]
        if strange:
            raise SiteError(
                f"{self._file}: a union head predicts the {len(UNION_CLASSES)} classes of NIH and "
                f"CheXpert; the site also labels {', '.join(strange)}. Name the classes to use "
                "with the key 'classes'."
            )
        return UNION_CLASSES

    def model(self) -> keras.Model:
        """The network, with a unit for each class."""
        from cxr_study.model import build

        return build(
            self.backbone, len(self.classes), image_size=self.image_size, hidden=self.hidden
        )

    def data(self, split: Split, *, training: bool = False) -> tf.data.Dataset:
        """Batches of a split, decoded once and kept; see `Site.data`."""
        from cxr_study.input_pipeline import dataset

        table = self._images.table
        chosen = np.flatnonzero(table["split"] == split)
        if not chosen.size:
            raise SiteError(
                f"{self._file}: the {split} split needs at least one image; it has none. "
                f"Make the split file anew: surgagg data split {self._file}"
            )
        labels = table.iloc[chosen].reindex(columns=list(self.classes), fill_value=0.0)
        return dataset(
            self._images.pixels,
            labels.to_numpy(np.float32),
            rows=self._images.rows[chosen],
            batch_size=self.batch_size,
            shuffle_seed=self.seed if training else None,
            augment=self.augment and training,
            seed=self.seed,
        )

    @cached_property
    def _file(self) -> Path:
        """Path of the site file, which exists."""
        folder = Path(self.sites) if self.sites else embedded_study().sites
        file = folder / f"{self.site}.yaml"
        if not file.is_file():
            names = sorted(path.stem for path in folder.glob("*.yaml"))
            where = f"{folder} has" if self.sites else "no folder is given; the phantom study has"
            raise SiteError(
                f"site file {file} does not exist; {where} sites {names}. Give the folder of your "
                "site files: --site-files, or the variable CXR_SITES where the client starts."
            )
        return file

    @cached_property
    def _labels(self) -> SiteLabels:
        return load_labels(read_site_file(self._file))

    @cached_property
    def _images(self) -> SiteImages:
        with progress.bar(f"{self.site}: decoding images") as report:
            return load_images(self._labels, self.image_size, progress=report)
