"""The site: all that the method asks of a study."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal

from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_context import FLContext

if TYPE_CHECKING:  # the server imports this module's neighbours, and has no TensorFlow
    import keras
    import tensorflow as tf

Split = Literal["train", "validation", "test"]


class SiteError(ValueError):
    """A site cannot take part: its files, classes or configuration are not usable."""


class Site(FLComponent, ABC):
    """One hospital's classes, model and data. The only thing that a new study must implement.

    Runs on the client. Everything may be asked for from the start of the run on; a problem that
    the hospital can mend is raised as a ValueError that says how, and keeps the site from training.
    """

    @property
    @abstractmethod
    def classes(self) -> tuple[str, ...]:
        """Classes that this site holds, in the order of its labels and of its head's units."""

    @abstractmethod
    def model(self) -> keras.Model:
        """A new, uncompiled model whose last layer is a Dense called "head", one unit per class.

        The units are sigmoid probabilities. Paths of all other variables must be the same at every
        site; no other layer may be called "head".
        """

    @abstractmethod
    def data(self, split: Split, *, training: bool = False, first_pass: int = 0) -> tf.data.Dataset:
        """Batches (images, labels) of a split.

        Args:
            split: Which part of the site's patients.
            training: Shuffle and augment anew in every pass; else keep the order. Order and
                augmentation of a pass must follow from a seed and its number alone, so that a
                continued run is the same as an uninterrupted one.
            first_pass: Number of the first pass that the dataset is iterated for, with `training`;
                the next has the next number.

        Returns:
            Images as the model takes them; labels float32 of shape (batch, classes): 1 present,
            0 absent, NaN not labelled (left out of loss and metrics), or a number between, a
            smoothed label (left out of AUROC).
        """


def find_site(site_id: str, fl_ctx: FLContext) -> Site:
    """The site component of the running job.

    Raises:
        SiteError: The job has no `Site` under this id.
    """
    site = fl_ctx.get_engine().get_component(site_id)
    if not isinstance(site, Site):
        raise SiteError(
            f"the client's configuration needs a Site component with id {site_id!r}; "
            f"got {type(site).__name__}. Check `components` in config_fed_client.conf."
        )
    return site
