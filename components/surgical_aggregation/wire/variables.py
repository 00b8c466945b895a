"""Names of a model's variables on the wire; no other module knows them.

A body variable travels under its Keras `variable.path`; a head travels as two variables per class,

    head/<class>/kernel     shape (features,)
    head/<class>/bias       shape (1,)

so that whatever works per variable (FLARE's stock aggregator, ExcludeVars, privacy filters,
homomorphic encryption) works per class. A class name may contain "/" and spaces.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.shareable import Shareable

from surgical_aggregation.aggregation.averaging import Array, Variables
from surgical_aggregation.aggregation.batch_norm_strategy import HEAD_LAYER

__all__ = ["classes_of", "label", "split"]

HEAD = "head/"
KERNEL = "/kernel"
BIAS = "/bias"

T = TypeVar("T")

Columns = dict[str, tuple[Array, Array]]


class WireError(ValueError):
    """A message does not carry a body with labelled columns."""


def class_of(name: str) -> str | None:
    """Class of the head variable called `name`; None for a body variable.

    Example:
        >>> class_of("head/Nodule/Mass/kernel")
        'Nodule/Mass'
    """
    if not name.startswith(HEAD):
        return None
    label, slash, part = name[len(HEAD) :].rpartition("/")
    if label and slash + part in (KERNEL, BIAS):
        return label
    raise WireError(
        f"head variables are called 'head/<class>/kernel' and 'head/<class>/bias'; got {name!r}. "
        "Does the site label its head (LabelHead) or keep it (personal_head), and is no body layer "
        "called 'head'?"
    )


def classes_of(names: Iterable[str]) -> tuple[str, ...]:
    """Classes that have a variable among `names`, sorted."""
    return tuple(sorted({label for name in names if (label := class_of(name)) is not None}))


def join(body: Mapping[str, T], columns: Mapping[str, tuple[T, T]]) -> dict[str, T]:
    """Variables (or a fact about each) by wire name: the body's, and two for every class."""
    variables = dict(body)
    for name, (kernel, bias) in columns.items():
        variables[f"{HEAD}{name}{KERNEL}"] = kernel
        variables[f"{HEAD}{name}{BIAS}"] = bias
    return variables


def split(variables: Variables) -> tuple[dict[str, Array], Columns]:
    """Separate body and columns; the inverse of `join`.

    Returns:
        Body variables by path, and class -> (kernel, bias) sorted by class.

    Raises:
        WireError: A head variable has an unknown name, or a column lacks its kernel or bias.
    """
    columns: Columns = {}
    for name in classes_of(variables):
        kernel, bias = f"{HEAD}{name}{KERNEL}", f"{HEAD}{name}{BIAS}"
        if kernel not in variables or bias not in variables:
            raise WireError(
                f"class {name!r} needs both {kernel!r} and {bias!r}; one is missing. "
                "Does a filter exclude or rename head variables?"
            )
        columns[name] = (variables[kernel], variables[bias])
    body = {name: value for name, value in variables.items() if class_of(name) is None}
    return body, columns


def label(variables: Variables, classes: Sequence[str]) -> dict[str, Array]:
    """Variables of a site's model by wire name, with the dense head split into columns.

    Args:
        variables: Variables by path, with head/kernel of shape (features, classes) and head/bias
            of shape (classes,).
        classes: Names of the head's units, in order.

    Raises:
        WireError: The head is missing, does not have one unit per class, or a class is repeated.
    """
    body = dict(variables)
    kernel, bias = (body.pop(f"{HEAD_LAYER}{part}", None) for part in (KERNEL, BIAS))
    if kernel is None or bias is None:
        raise WireError(
            f"the result needs {HEAD_LAYER}/kernel and {HEAD_LAYER}/bias; got "
            f"{sorted(variables)[:5]} ... Is the model's last layer a Dense called {HEAD_LAYER!r}?"
        )
    count = len(classes)
    if kernel.ndim != 2 or kernel.shape[1] != count or bias.shape != (count,):
        raise WireError(
            f"a head of {count} classes needs a kernel (features, {count}) and a bias ({count},); "
            f"got {kernel.shape} and {bias.shape}. Does the model's last layer have one unit per "
            "class of the site?"
        )
    columns = {
        name: (kernel[:, index].copy(), bias[index : index + 1].copy())
        for index, name in enumerate(classes)
    }
    if len(columns) < count:
        raise WireError(f"every class needs one column; got a repeated class in {list(classes)}.")
    return join(body, columns)


def weights(shareable: Shareable) -> DXO:
    """The weights in a shareable; raises `WireError` if it carries anything else."""
    return _model(shareable, DataKind.WEIGHTS)


def result(shareable: Shareable) -> DXO:
    """The weights or weight differences in a training result; raises `WireError`."""
    return _model(shareable, DataKind.WEIGHTS, DataKind.WEIGHT_DIFF)


def _model(shareable: Shareable, *kinds: str) -> DXO:
    needed = " or ".join(kinds)
    try:
        dxo = from_shareable(shareable)
    except ValueError as error:
        raise WireError(f"a DXO of kind {needed} was needed; got {error}.") from error
    if dxo.data_kind not in kinds or not isinstance(dxo.data, dict):
        raise WireError(
            f"a DXO of kind {needed} was needed; got {str(dxo.data_kind)!r}. "
            "Does a filter change the kind of data?"
        )
    return dxo
