"""Check whether a site's result of a round may be averaged."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from numbers import Integral, Real

import numpy as np

from surgical_aggregation.aggregation import one_sided, site_result
from surgical_aggregation.aggregation.averaging import Array, Variables
from surgical_aggregation.aggregation.batch_norm_strategy import (
    Strategy,
    VariableKinds,
    kept_at_site,
)
from surgical_aggregation.aggregation.class_names import Spellings, shown, twins, unfit
from surgical_aggregation.aggregation.site_result import LARGEST_COUNT, Limits, SiteResult, received

_OTHER_KINDS = (
    ". Does the site use the server's strategy, and was the initial body made from the sites' "
    "network? Its manifest lists which variables are batch normalisation's and which are constant: "
    "if it was made from another network or by an older version, make it again"
)


@dataclass(frozen=True)
class Expected:
    """What every result of a run is checked against.

    Attributes:
        body: The global model's body variables, by path.
        features: Number of features, the length of a column's kernel.
        kinds: Kinds of the body's variables.
        strategy: See `aggregation.batch_norm_strategy`.
        personal_head: Whether heads stay at their sites. Default False.
        columns_only: Whether sites send columns and no body. Default False.
        known: Classes of the global model and of the round's results so far.
        limits: Limits on a result.
        columns: The global model's columns, by class; a new class starts from zeros.
    """

    body: Variables
    features: int
    kinds: VariableKinds
    strategy: str | Strategy
    personal_head: bool = False
    columns_only: bool = False
    known: Spellings = field(default_factory=Spellings)
    limits: Limits = field(default_factory=Limits)
    columns: Mapping[str, tuple[Array, Array]] = field(default_factory=dict)

    @cached_property
    def dtype(self) -> np.dtype[np.floating]:
        """Dtype of the columns: that of the body's floating numbers."""
        dtypes = {value.dtype for value in self.body.values() if value.dtype.kind not in "iub"}
        return np.result_type(*(dtypes or {np.dtype(np.float32)}))

    @cached_property
    def sent(self) -> set[str]:
        """Paths of the body variables that a site must send."""
        if self.columns_only:
            return set()
        return self.body.keys() - kept_at_site(self.strategy, self.body, self.kinds)


def added(differences: Variables, start: Variables) -> dict[str, Array]:
    """The trained variables of a site: its differences, added to the model's variables.

    A variable that is new to the model starts from zeros. A difference of another shape or dtype
    than the model's variable is returned unchanged, for `fault` to report.
    """
    trained = dict(differences)
    for name, value in differences.items():
        before = start.get(name)
        if before is not None and isinstance(value, np.ndarray) and _form(value) == _form(before):
            with np.errstate(over="ignore", invalid="ignore"):  # `fault` checks for finite values
                trained[name] = np.asarray(before + value)  # 0-d arrays add to a scalar
    return trained


def _some(names: Collection[str]) -> str:
    first = ", ".join(shown(name) for name in sorted(names)[:3])
    return first if len(names) <= 3 else f"{first} and {len(names) - 3} more"


def _array_fault(
    name: str, value: object, start: Array, farthest: float = site_result.LARGEST_STEP
) -> str | None:
    shape, dtype = _form(start)
    if not isinstance(value, np.ndarray) or value.dtype != dtype:
        got = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
        return f"{name!r} must be an array of {dtype}; got {got}"
    if value.shape != shape:
        return f"{name!r} must have shape {shape}; got {value.shape}"
    if lost := value.size - np.count_nonzero(np.isfinite(value)):
        return f"{name!r} has {lost} values that are NaN or infinite"
    with np.errstate(over="ignore"):
        steps = np.abs(value - start)
    if far := np.count_nonzero(steps > farthest):
        return (
            f"{name!r} has {far} values that moved by more than {farthest:.4g} (largest step "
            f"{steps.max():.2g}); training should not move a value so far in a round: if it has "
            "diverged, lower the site's learning rate"
        )
    return None


def oversize(result: SiteResult, limits: Limits) -> str | None:
    """Which limit a result exceeds, in words; None: it exceeds none. Never raises."""
    counted = result.positives
    classes = len(result.columns)
    if isinstance(counted, Mapping):
        classes = max(classes, len(counted))
    if classes > limits.site_classes:
        return (
            f"it has {classes} classes; the limit is {limits.site_classes} ('site_classes' of the "
            "aggregator's limits)"
        )
    parts = [part for column in result.columns.values() for part in column]
    size = sum(getattr(value, "nbytes", 0) for value in [*result.body.values(), *parts])
    size += sum(map(len, result.body)) + 2 * sum(map(len, result.columns))
    if size > limits.result_bytes:
        return (
            f"it has {size} bytes; the limit is {limits.result_bytes} ('result_bytes' of the "
            "aggregator's limits)"
        )
    return None


def fault(result: SiteResult, expected: Expected) -> str | None:
    """The first reason why a result must be refused, in words; None: it may be averaged.

    Refused are

    - a body variable that is unknown, missing, not to be sent, of another shape or dtype, not
      finite, or farther from the received one than `LARGEST_STEP` (a running variance: its square)
    - a running variance below 0
    - an empty head, or any column if heads are personal; a malformed column
    - a class name that is not printable or too long; two spellings of one class, in the result or
      compared with the known classes; more classes than the global model may have
    - a number of samples that is not above 0, positives that are not counts, or either above
      `LARGEST_COUNT`
    - an invalid report of one-sided classes (`one_sided.fault`)

    Never raises.
    """
    sent = expected.sent
    if unknown := set(result.body) - sent:
        return f"body variables {_some(unknown)} must not be sent in this run{_OTHER_KINDS}"
    if missing := sent - set(result.body):
        return f"body variables {_some(missing)} are missing{_OTHER_KINDS}"
    variances = expected.kinds.variances
    for path, value in result.body.items():
        squared = path in variances
        farthest = site_result.LARGEST_STEP**2 if squared else site_result.LARGEST_STEP
        if found := _array_fault(path, value, expected.body[path], farthest):
            return found
        if squared and (value < 0).any():
            return (
                f"{path!r} has {np.count_nonzero(value < 0)} variances below 0: if a privacy "
                "filter clips them or adds noise, use strategy 'fedbn' or 'fedbn+', which keep "
                "batch normalisation at the site, or exclude the statistics from the filter"
            )
    return (
        _head_fault(result, expected)
        or _weights_fault(result)
        or one_sided.fault(result.lacking, result.columns)
    )


def _form(array: Array) -> tuple[tuple[int, ...], np.dtype[np.floating]]:
    return array.shape, array.dtype


def _head_fault(result: SiteResult, expected: Expected) -> str | None:
    if expected.personal_head:
        if result.columns:
            return (
                f"it has columns of {_some(result.columns)}, but in this run every head stays at "
                "its site: set personal_head of the site's executor"
            )
        return None
    if not result.columns:
        return "the head is empty: a site needs at least one class"
    if found := _names_fault(result.columns, expected):
        return found
    new = np.zeros(expected.features, expected.dtype), np.zeros(1, expected.dtype)
    for name, column in result.columns.items():
        received = expected.columns.get(name, new)
        for part, value, start in zip(("kernel", "bias"), column, received, strict=True):
            if found := _array_fault(f"{part} of {name}", value, start):
                return found
    return None


def _names_fault(names: Collection[str], expected: Expected) -> str | None:
    limits, known = expected.limits, expected.known
    for name in names:
        if found := unfit(name, limits.class_name_bytes):
            return found
    if pair := twins(names):
        return f"classes {pair[0]!r} and {pair[1]!r} are two spellings of one class"
    for name in names:
        if (twin := known.twin(name)) is not None:
            return (
                f"class {name!r} is known as {shown(twin)} in this run, another spelling of it: "
                "use that spelling at this site"
            )
    new = sum(name not in known for name in names)
    if new and len(known) + new > limits.model_classes:
        return (
            f"with its {new} new classes the global model would have {len(known) + new}; the limit "
            f"is {limits.model_classes} ('model_classes' of the aggregator's limits)"
        )
    return None


def _weights_fault(result: SiteResult) -> str | None:
    samples, positives = result.samples, result.positives
    if samples is not None and not (_is_amount(samples) and samples > 0):
        most = f"{LARGEST_COUNT:.0e}"
        return f"number of samples must be a number > 0 and at most {most}; got {received(samples)}"
    if positives is None:
        return None
    if not isinstance(positives, Mapping):
        return f"positives must be given by class; got {received(positives)}"
    for name in result.columns:
        count = positives.get(name)
        if not _is_amount(count, Integral):
            return (
                f"number of positives of {name!r} must be a count of at most {LARGEST_COUNT:.0e}; "
                f"got {received(count)}"
            )
    return None


def _is_amount(value: object, kind: type = Real) -> bool:
    number = isinstance(value, kind) and not isinstance(value, bool)
    return number and bool(0 <= value <= LARGEST_COUNT)  # type: ignore[operator]
