"""A site's training, round by round, independent of FLARE."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING

import numpy as np

from surgical_aggregation.aggregation import batch_norm_strategy as strategies
from surgical_aggregation.aggregation import one_sided
from surgical_aggregation.aggregation.averaging import Array
from surgical_aggregation.site.contract.site import Site, SiteError, Split
from surgical_aggregation.site.training.local_model import LocalModel
from surgical_aggregation.site.training.loss import balanced_weights
from surgical_aggregation.site.training.task_abort import Stop, never
from surgical_aggregation.site.training.training_options import TrainingOptions
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.variables import Columns

if TYPE_CHECKING:
    import tensorflow as tf

    from surgical_aggregation.site.training.local_model import Predicted

_PERSONAL = "personal/"
_PASSES = "passes"


class LocalTraining:
    """The steps of a site's round, federated or not: receive, warm up, evaluate, train.

    Personal variables (see `Strategy.personal`, and those of a personal head) start as received,
    and belong to the site from its first training or warm-up on.

    Args:
        site: The site's classes, model and data.
        options: How to train.

    Attributes:
        kept_at_site: Paths of the variables that are not sent, including a personal head's.
        head: Paths of the head's variables.
        lacking: Class -> kind of label that the site lacks, see `one_sided.lacking`.
        images: Number of training images.
        positives: Class -> number of positive training labels.
        passes: Number of passes over the training split so far.
        personal: The site's personal variables by path; None: there are none yet.

    Raises:
        SiteError: A class has no label, and the head is not that of a union.
        ValueError: The site's data or model is unusable.
    """

    def __init__(self, site: Site, options: TrainingOptions):
        self.site = site
        self.options = options
        self.classes = tuple(site.classes)
        model = site.model()
        self._evaluated: dict[Split, tf.data.Dataset] = {
            split: site.data(split) for split in ("train", "validation", "test")
        }
        labels = site.training_labels
        self.images = len(labels)
        self.positives = {
            c: int(n) for c, n in zip(self.classes, (labels == 1).sum(0), strict=True)
        }
        self.lacking = one_sided.lacking(self.classes, labels)
        missing = tuple(self.lacking.get(c) == one_sided.LABELLED for c in self.classes)
        if any(missing) and not site.union_head:
            names = ", ".join(compress(self.classes, missing))
            raise SiteError(f"no training image has a label of {names}: leave it out at this site")
        weights = balanced_weights(labels) if options.class_weighting == "balanced" else None
        self.model = LocalModel(model, self.classes, options, weights, missing)
        self.head = frozenset(self.model.dense_head({}))
        head = self.head if options.personal_head else frozenset()
        body, kinds = self.model.variables().keys() - self.head, self.model.kinds
        self.kept_at_site = strategies.kept_at_site(options.strategy, body, kinds) | head
        self._own = strategies.find(options.strategy).personal(body, kinds) | head
        self.passes = 0
        self.personal: dict[str, Array] | None = None

    @cached_property
    def _training_data(self) -> tf.data.Dataset:
        return self.site.data("train", training=True, first_pass=self.passes)

    def receive(
        self,
        body: Mapping[str, Array],
        columns: Columns,
        personal: Mapping[str, Array] | None = None,
    ) -> None:
        """Load a model.

        Args:
            body: Body variables by path.
            columns: Columns of some of the site's classes; the others are unchanged.
            personal: Personal variables by path. Default None: the site's present ones.

        Raises:
            SiteError: The model does not fit this site's network.
        """
        self.model.set_body(body)
        self.model.set_columns(columns)
        self.model.assign(personal or self.personal or {})

    def unknown(self, columns: Columns) -> tuple[str, ...]:
        """Classes of the site without a trained column, neither in `columns` nor its own."""
        if self.options.personal_head and self.personal is not None:
            return ()
        return tuple(name for name in self.classes if name not in columns)

    def warm_up(self, classes: tuple[str, ...], stop: Stop = never) -> None:
        """Train the columns of some classes on the frozen body; see `LocalModel.warm_up`."""
        self.model.warm_up(classes, self._evaluated["train"], stop)
        self.personal = self.personal_variables()

    def refit(self, stop: Stop = never) -> float | None:
        """Refit the columns on the frozen body; see `LocalModel.refit`."""
        penalty = self.model.refit(self._evaluated["train"], self._evaluated["validation"], stop)
        self.personal = self.personal_variables()
        return penalty

    def predict(self, split: Split, stop: Stop = never) -> Predicted:
        """Outputs for a split; see `LocalModel.predict`."""
        return self.model.predict(self._evaluated[split], stop)

    def train(self, round_: int, stop: Stop = never) -> float:
        """Train for a round, given its number; returns the mean loss of the last epoch."""
        options = self.options
        pseudo_labels = round_ >= options.pseudo_labels_from
        try:
            return self.model.train(self._training_data, stop, pseudo_labels=pseudo_labels)
        finally:
            self.passes += self.options.epochs
            self.personal = self.personal_variables()

    @property
    def has_personal(self) -> bool:
        """Whether the site ends with a personal model; see `batch_norm_strategy.has_personal`."""
        options = self.options
        return strategies.has_personal(options.strategy, personal_head=options.personal_head)

    def personal_variables(self) -> dict[str, Array] | None:
        """Copies of the model's personal variables; None: the site has none."""
        if not self.has_personal:
            return None
        return {p: v for p, v in self.model.variables().items() if p in self._own}

    def variables(self) -> dict[str, Array]:
        """Copies of all variables by path, including the dense head's."""
        return self.model.variables()

    def differences(self, body: Mapping[str, Array], columns: Columns) -> dict[str, Array]:
        """Differences of all variables from those received; a missing column counts as zeros."""
        start = {**body, **self.model.dense_head(columns)}
        # asarray, since the difference of 0-d arrays is a scalar
        return {path: np.asarray(value - start[path]) for path, value in self.variables().items()}

    def labelled_variables(self) -> dict[str, Array]:
        """Copies of all variables by wire name, with the head split into columns."""
        return wire.label(self.variables(), self.classes)

    def state(self) -> dict[str, Array]:
        """The state that the next round needs in addition to the received model."""
        personal = {f"{_PERSONAL}{path}": value for path, value in (self.personal or {}).items()}
        return {**self.model.training_state(), **personal, _PASSES: np.array(self.passes)}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Load a `state` of another process; call it before the first `train`.

        Raises:
            SiteError: The state is of another model, of other classes or of another strategy.
        """
        own = {n: v for n, v in state.items() if n.startswith(_PERSONAL)}
        rest = {n: v for n, v in state.items() if n not in own and n != _PASSES}
        personal = {n.removeprefix(_PERSONAL): v for n, v in own.items()}
        if personal and personal.keys() != self._own:
            raise SiteError("the personal variables are of another model or strategy.")
        self.model.set_training_state(rest)
        self.personal = personal or None
        self.passes = int(state[_PASSES])
