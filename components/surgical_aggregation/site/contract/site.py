"""The site: all that the method needs from an application; whether a body is of its network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from nvflare.apis.fl_component import FLComponent

from surgical_aggregation.site.contract.site_policy import NO_POLICY, SitePolicy

if TYPE_CHECKING:  # the server imports this module's neighbours, and has no TensorFlow
    import keras
    import tensorflow as tf

Split = Literal["train", "validation", "test"]

Shapes = Mapping[str, tuple[int, ...] | None]
"""Path of a variable -> its shape; None: not known."""


class SiteError(ValueError):
    """A site cannot take part: its files, classes or configuration are not usable."""


class Site(FLComponent, ABC):
    """One hospital's classes, model and data. The only class that an application must implement.

    Runs on the client. Everything may be called from the start of the run on; a problem that the
    hospital can mend is raised as a ValueError that says how, and keeps the site from training.
    """

    policy: SitePolicy = NO_POLICY
    """The hospital's policy, set by `find_site`."""

    @property
    @abstractmethod
    def classes(self) -> tuple[str, ...]:
        """Classes that this site labels, in the order of its labels and of its head's units."""

    @property
    def network_facts(self) -> Mapping[str, Any]:
        """What the manifests of the site's models say of its network, JSON-serialisable.

        See `model_facts.CONTRACT`: backbone, hidden, image_size, input. Default: nothing.
        """
        return {}

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
            training: Shuffle and augment anew in every pass; else keep the order. Both must follow
                from a seed and the pass's number alone, so that a continued run is the same as an
                uninterrupted one.
            first_pass: Number of the dataset's first pass in training; the next has the next
            number.

        Returns:
            Images as the model takes them; labels float32 of shape (batch, classes): 1 present,
            0 absent, NaN not labelled (left out of loss and metrics), or a number between, a
            smoothed label (left out of AUROC).
        """

    @cached_property
    def training_labels(self) -> NDArray[np.float32]:
        """Labels of the training split as `data` has them, shape (images, classes).

        A site that knows them without reading every image should override this.
        """
        return np.concatenate([labels for _, labels in self.data("train").as_numpy_iterator()])


def shapes_of(variables: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Shapes of arrays or variables by path."""
    return {path: tuple(value.shape) for path, value in variables.items()}


def check_body(body: Shapes, own: Shapes, network: str = "") -> None:
    """Refuse a server's body with other paths or shapes than the network's own variables.

    `network` says how the networks differ, as far as known.

    Raises:
        SiteError: They differ.
    """
    differ = sorted(body.keys() ^ own.keys())
    if not differ:
        differ = sorted(path for path in own if body[path] not in (None, own[path]))
    if differ:
        raise SiteError(
            f"the server's body and this site's differ in {len(differ)} variables, e.g. "
            f"{differ[:3]}{network}. Start the run from an initial body of the same backbone and "
            "image size as the sites' model, in which every layer and weight has a name: Keras "
            "numbers those that have none by what the process has made before."
        )
