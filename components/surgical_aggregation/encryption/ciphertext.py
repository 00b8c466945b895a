"""A ciphertext as an array of bytes, with the shape and dtype of the array that it hides.

So it travels, is merged, selected and stored like any other variable. FLARE's own way packs the
encryption context beside every ciphertext (0.7 MB each).
"""

import json
from typing import Any

import numpy as np
import tenseal
from numpy.typing import NDArray

from surgical_aggregation.aggregation.averaging import Array
from surgical_aggregation.checkpoints.checkpoint import Checkpoint

Packed = NDArray[Any]
"""Of uint8; typed as loosely as a dict of variables that are packed and not."""


class CiphertextError(ValueError):
    """An array of bytes is no ciphertext."""


def is_packed(value: object) -> bool:
    """Whether a variable is a packed ciphertext; models have no variables of bytes."""
    return isinstance(value, np.ndarray) and value.dtype == np.uint8


def pack(vector: tenseal.CKKSVector, form: Array) -> Packed:
    """Write a ciphertext, and the shape and dtype of `form`, into one array of bytes."""
    header = json.dumps([form.dtype.str, form.shape]).encode()
    return np.frombuffer(header + b"\n" + vector.serialize(), np.uint8)


def form(packed: Packed) -> Array:
    """Zeros of the shape and dtype that a ciphertext hides, without their memory.

    Raises:
        CiphertextError: It is no packed ciphertext.
    """
    header, _, _ = packed.tobytes().partition(b"\n")
    try:
        dtype, shape = json.loads(header)
        return np.broadcast_to(np.zeros((), np.dtype(dtype)), shape)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise CiphertextError(f"a packed ciphertext was needed; got {header[:40]!r}.") from error


def unpack(packed: Packed, context: tenseal.Context) -> tenseal.CKKSVector:
    """The ciphertext in an array of bytes.

    Raises:
        CiphertextError: It is none, or hides another number of values than its form has.
    """
    expected = form(packed)
    _, _, serialised = packed.tobytes().partition(b"\n")
    try:
        vector = tenseal.ckks_vector_from(context, serialised)
    except (ValueError, RuntimeError) as error:
        raise CiphertextError(f"a ciphertext under the server's context was needed: {error}") from (
            error
        )
    if vector.size() != expected.size:
        raise CiphertextError(
            f"a ciphertext of shape {expected.shape} needs {expected.size} values; got "
            f"{vector.size()}."
        )
    return vector


def decrypted(checkpoint: Checkpoint, context: tenseal.Context) -> Checkpoint:
    """A checkpoint of an encrypted run with its variables decrypted, by a site's context.

    That is `tenseal.context_from` on its `startup/client_context.tenseal`.

    Raises:
        CiphertextError: The context holds no secret key.
    """
    if not context.is_private():
        raise CiphertextError(
            "decrypting needs a site's context, with the secret key; got one without. Use the "
            "client_context.tenseal of a site."
        )
    variables = {
        name: plain(value, context) if is_packed(value) else value
        for name, value in checkpoint.variables.items()
    }
    return Checkpoint(variables, checkpoint.manifest)


def plain(packed: Packed, context: tenseal.Context) -> Array:
    """The array that a ciphertext hides; `context` with the secret key."""
    return shaped(unpack(packed, context).decrypt(), form(packed))


def shaped(values: list[float], form: Array) -> Array:
    """Decrypted values as an array of the given form."""
    return np.array(values, form.dtype).reshape(form.shape)
