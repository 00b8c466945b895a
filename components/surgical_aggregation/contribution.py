"""One site's result of one round, and what makes it unfit to be averaged."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from surgical_aggregation.averaging import Array, Variables
from surgical_aggregation.strategy import kept_at_site
from surgical_aggregation.variable_kinds import MOVING_VARIANCE, VariableKinds

_OTHER_KINDS = (
    ". Has the site the strategy of the server, and does the initial body come from the sites' "
    "network? Its manifest says which variables are batch normalisation's and which are constant: "
    "where another network or an older version made it, make it anew (`surgagg init`)"
)


@dataclass(frozen=True)
class Contribution:
    """What a site trained in one round.

    Attributes:
        body: Body variables by path.
        columns: Class -> (kernel of shape (features,), bias of shape (1,)).
        samples: Images trained on in this round; None when not reported.
        positives: Class -> positive labels of it at the site; None when not reported.
    """

    body: Variables
    columns: Mapping[str, tuple[Array, Array]]
    samples: float | None = None
    positives: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Expected:
    """What every contribution to a run must look like.

    Attributes:
        body: The global model's body variables, by path.
        features: Number of features that a column weighs.
        kinds: Of the body's variables.
        strategy: What sites keep to themselves; see `strategy`.
        personal_head: Whether sites keep their heads to themselves as well. Default False.
    """

    body: Variables
    features: int
    kinds: VariableKinds
    strategy: str
    personal_head: bool = False

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Of the columns: that of the body's floating numbers."""
        dtypes = {value.dtype for value in self.body.values() if value.dtype.kind not in "iub"}
        return np.result_type(*(dtypes or {np.dtype(np.float32)}))

    def sent(self) -> set[str]:
        """Paths of the body variables that a site must send."""
        return self.body.keys() - kept_at_site(self.strategy, self.kinds)


def added(
    differences: Contribution, body: Variables, columns: Mapping[str, tuple[Array, Array]]
) -> Contribution:
    """A contribution of differences, added to the model that they are differences from.

    Args:
        differences: What a site sent.
        body: Body variables of the model, by path.
        columns: Class -> (kernel, bias) of the model; a class that it lacks counts as zeros.

    Returns:
        The trained variables, each in its own dtype. What does not fit the model's variable is left
        as it came, for `fault` to name.
    """
    return replace(
        differences,
        body={name: _sum(body.get(name), value) for name, value in differences.body.items()},
        columns={
            name: (
                _sum(columns[name][0], kernel) if name in columns else kernel,
                _sum(columns[name][1], bias) if name in columns else bias,
            )
            for name, (kernel, bias) in differences.columns.items()
        },
    )


def _sum(start: Array | None, difference: Array) -> Array:
    if start is None or not isinstance(difference, np.ndarray):
        return difference
    if _form(difference) != _form(start):
        return difference
    with np.errstate(over="ignore", invalid="ignore"):  # `fault` refuses what is not finite
        return np.asarray(start + difference)  # which is a scalar where both have no dimension


def _fold(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


def _some(names: Collection[str]) -> str:
    first = ", ".join(repr(name) for name in sorted(names)[:3])
    return first if len(names) <= 3 else f"{first} and {len(names) - 3} more"


def _array_fault(
    name: str, value: object, shape: tuple[int, ...], dtype: np.dtype[np.floating]
) -> str | None:
    if not isinstance(value, np.ndarray) or value.dtype != dtype:
        got = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
        return f"{name!r} must be an array of {dtype}; got {got}"
    if value.shape != shape:
        return f"{name!r} must have shape {shape}; got {value.shape}"
    if not np.isfinite(value).all():
        return (
            f"{name!r} has {np.count_nonzero(~np.isfinite(value))} values that are NaN or infinite"
        )
    return None


def _weight_fault(what: str, weight: float) -> str | None:
    number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
    if not number or not 0 < weight < math.inf:
        return f"{what} must be a number > 0; got {weight!r}"
    return None


def fault(contribution: Contribution, expected: Expected) -> str | None:
    """Why a contribution must be refused; None when it may be averaged.

    Refused are: a body variable unknown, missing, not meant to be sent, of another shape or
    dtype or not finite; a running variance below 0; no column at all, or any where heads are
    personal; a class name that cannot be printed; two classes alike
    but for case or Unicode form; a column likewise malformed; a reported number of samples
    that is not above 0, or of positives that is no count.

    Returns:
        The first fault found, in words that name the variable and what came; never raises for
        whatever the site sent.
    """
    sent = expected.sent()
    if unknown := set(contribution.body) - sent:
        said = "are not among those that sites send in this run"
        return f"body variables {_some(unknown)} {said}{_OTHER_KINDS}"
    if missing := sent - set(contribution.body):
        return f"body variables {_some(missing)} are missing{_OTHER_KINDS}"
    variances = {path for path in expected.kinds.statistics if path.endswith(MOVING_VARIANCE)}
    for path, value in contribution.body.items():
        if found := _array_fault(path, value, *_form(expected.body[path])):
            return found
        if path in variances and (value < 0).any():
            return (
                f"{path!r} has {np.count_nonzero(value < 0)} variances below 0: if a privacy "
                "filter clips or blurs them, use strategy 'fedbn' or 'fedbn+', which keep batch "
                "normalisation at the site, or keep the statistics out of the filter"
            )
    return _head_fault(contribution, expected) or _weights_fault(contribution)


def _form(array: Array) -> tuple[tuple[int, ...], np.dtype[np.floating]]:
    return array.shape, array.dtype


def _head_fault(contribution: Contribution, expected: Expected) -> str | None:
    if expected.personal_head:
        if contribution.columns:
            return (
                f"columns of {_some(contribution.columns)} came, and in this run every head stays "
                "at its site: has the site's executor personal_head, too"
            )
        return None
    if not contribution.columns:
        return "the head is empty: a site must hold at least one class"
    seen: dict[str, str] = {}
    for name, (kernel, bias) in contribution.columns.items():
        if not name.isprintable() or name != name.strip():
            return f"a class name must be printable text without outer spaces; got {name!r}"
        if (twin := seen.setdefault(_fold(name), name)) != name:
            return f"classes {twin!r} and {name!r} are one class spelt twice"
        found = _array_fault(
            f"kernel of {name}", kernel, (expected.features,), expected.dtype
        ) or _array_fault(f"bias of {name}", bias, (1,), expected.dtype)
        if found:
            return found
    return None


def _weights_fault(contribution: Contribution) -> str | None:
    if contribution.samples is not None and (
        found := _weight_fault("number of samples", contribution.samples)
    ):
        return found
    if contribution.positives is not None:
        if not isinstance(contribution.positives, Mapping):
            return f"positives must be given by class; got {contribution.positives!r}"
        for name in contribution.columns:
            count = contribution.positives.get(name)
            if not isinstance(count, int) or isinstance(count, bool) or count < 0:
                return f"number of positives of {name!r} must be a count; got {count!r}"
    return None
