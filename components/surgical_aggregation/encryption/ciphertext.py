"""A ciphertext as an array of bytes, with the shape and dtype of the encrypted array.

So it is sent, merged, selected and stored like any other variable. FLARE packs the encryption
context with every ciphertext (0.7 MB each).
"""

import json
from typing import Any

import numpy as np
import tenseal
from numpy.typing import NDArray

from surgical_aggregation.aggregation.averaging import Array
from surgical_aggregation.checkpoints.checkpoint import Checkpoint

Packed = NDArray[Any]
"""Array of uint8; typed loosely, since a dict may have packed and plain variables."""


class CiphertextError(ValueError):
    """An array of bytes is not a ciphertext."""


def is_packed(value: object) -> bool:
    """Whether a variable is a packed ciphertext; models have no variables of bytes."""
    return isinstance(value, np.ndarray) and value.dtype == np.uint8


def pack(vector: tenseal.CKKSVector, form: Array) -> Packed:
    """Serialize a ciphertext, with the shape and dtype of `form`, into an array of uint8."""
    header = json.dumps([form.dtype.str, form.shape]).encode()
    return np.frombuffer(header + b"\n" + vector.serialize(), np.uint8)


def form(packed: Packed) -> Array:
    """Zeros of the encrypted array's shape and dtype, which take no memory.

    Raises:
        CiphertextError: The array is not a packed ciphertext.
    """
    header, _, _ = packed.tobytes().partition(b"\n")
    try:
        dtype, shape = json.loads(header)
        return np.broadcast_to(np.zeros((), np.dtype(dtype)), shape)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise CiphertextError(f"a packed ciphertext was needed; got {header[:40]!r}.") from error


def unpack(packed: Packed, context: tenseal.Context, *, fresh: bool = False) -> tenseal.CKKSVector:
    """The ciphertext in an array of uint8.

    Args:
        packed: See `pack`.
        context: Context of a site or the server.
        fresh: Whether it must have the scale and level at which sites encrypt: others cannot be
            added to theirs. Default False.

    Raises:
        CiphertextError: It is not a ciphertext under this context, its number of values does not
            match its shape, or it is not `fresh`.
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
    level = context.seal_context().data.first_parms_id()
    made = {(part.scale, tuple(part.parms_id())) for part in vector.ciphertext()}
    if fresh and made != {(context.global_scale, tuple(level))}:
        raise CiphertextError("a ciphertext of the context's scale and first level was needed.")
    return vector


def decrypted(checkpoint: Checkpoint, context: tenseal.Context) -> Checkpoint:
    """Decrypt the variables of a checkpoint of an encrypted run.

    Args:
        checkpoint: The checkpoint.
        context: A site's context, `tenseal.context_from` on its `startup/client_context.tenseal`.

    Raises:
        CiphertextError: The context has no secret key.
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
    """Decrypt a packed ciphertext; `context` needs the secret key."""
    return shaped(unpack(packed, context).decrypt(), form(packed))


def shaped(values: list[float], form: Array) -> Array:
    """Decrypted values as an array with the shape and dtype of `form`."""
    return np.array(values, form.dtype).reshape(form.shape)
