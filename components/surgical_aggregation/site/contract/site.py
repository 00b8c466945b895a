"""The site: the interface that an application implements, and checks of a body against it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from nvflare.apis.fl_component import FLComponent

from surgical_aggregation.site.contract.site_policy import NO_POLICY, SitePolicy

if TYPE_CHECKING:  # the server imports modules of this package without TensorFlow
    import keras
    import tensorflow as tf

__all__ = ["Site"]

Split = Literal["train", "validation", "test"]

Shapes = Mapping[str, tuple[int, ...] | None]
"""Path of a variable -> its shape; None: unknown."""


class SiteError(ValueError):
    """A site cannot participate: its files, classes or configuration are unusable."""


class Site(FLComponent, ABC):
    """One hospital's classes, model and data; the only class that an application must implement.

    Runs on the client. All methods may be called from the start of the run on. Raise a ValueError
    with instructions for a problem that the hospital can fix; the site then does not participate.
    """

    policy: SitePolicy = NO_POLICY
    """The hospital's policy, set by `find_site`."""

    identity: str = ""
    """Name of the site in the network, set by `find_site`."""

    union_head: bool = False
    """Whether the job gives the head classes that the site does not label."""

    @property
    @abstractmethod
    def classes(self) -> tuple[str, ...]:
        """Classes that this site labels, in the order of its labels and of its head's units."""

    @property
    def network_facts(self) -> Mapping[str, Any]:
        """Facts about the network for the manifests of the site's models, JSON-serialisable.

        See `model_facts.CONTRACT`: backbone, hidden, image_size, input. Default: none.
        """
        return {}

    @abstractmethod
    def model(self) -> keras.Model:
        """A new, uncompiled model whose last layer is a Dense called "head", one unit per class.

        Outputs are sigmoid probabilities of shape (batch, classes). The paths of all other
        variables must be equal at all sites, and no other layer may be called "head".
        """

    @abstractmethod
    def data(self, split: Split, *, training: bool = False, first_pass: int = 0) -> tf.data.Dataset:
        """Batches (images, labels) of a split.

        Args:
            split: "train", "validation" or "test", of disjoint patients.
            training: Whether to shuffle and augment, differently in every pass; otherwise the order
                is fixed. Both must depend only on a seed and the number of the pass, so that a
                resumed run equals an uninterrupted one. Default False.
            first_pass: Number of the dataset's first pass; later passes count up. Default 0.

        Returns:
            Images in the model's input format; labels float32 of shape (batch, classes): 1 present,
            0 absent, NaN not labelled (ignored by loss and metrics), or a number between 0 and 1, a
            smoothed label (ignored by AUROC).
        """

    @cached_property
    def training_labels(self) -> NDArray[np.float32]:
        """Labels of the training split, in the format of `data`, shape (images, classes).

        Override this if the labels are known without reading every image.
        """
        return np.concatenate([labels for _, labels in self.data("train").as_numpy_iterator()])


def shapes_of(variables: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Shapes of arrays or variables by path."""
    return {path: tuple(value.shape) for path, value in variables.items()}


def check_body(body: Shapes, own: Shapes, network: str = "") -> None:
    """Check that a body received from the server fits the site's network.

    Args:
        body: Shapes of the server's body.
        own: Shapes of the site's body.
        network: Known differences between the networks, for the error. Default "".

    Raises:
        SiteError: Paths or shapes differ.
    """
    differ = sorted(body.keys() ^ own.keys())
    if not differ:
        differ = sorted(path for path in own if body[path] not in (None, own[path]))
    if differ:
        raise SiteError(
            f"the server's body and this site's differ in {len(differ)} variables, e.g. "
            f"{differ[:3]}{network}. Start the run from an initial body with the backbone and "
            "image size of the sites' model, and name every layer and weight of it: Keras numbers "
            "unnamed ones, differently in each process."
        )
