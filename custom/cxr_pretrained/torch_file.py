"""Weights that PyTorch saved, read without PyTorch and without Keras.

The format is that of `torch.save` before version 1.6: five pickles (magic number, version, facts of
the machine, the object, keys of its storages), then the values of each storage.
"""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

_BEGINNING = (0x1950A86A20F9469CFC6C, 1001)
"""Magic number and version of the format."""

_DTYPES: Mapping[str, np.dtype[Any]] = {
    "FloatStorage": np.dtype("<f4"),
    "LongStorage": np.dtype("<i8"),
}


class TorchFileError(ValueError):
    """Not a file of weights that PyTorch 1.0 to 1.5 saved, or damaged, or with other content."""


@dataclass(frozen=True)
class _Tensor:
    """Location of a tensor's values.

    Attributes:
        storage: Key of the storage.
        dtype: Type of the values.
        offset: Of the first value in the storage, in values.
        shape: Of the tensor.
        strides: Steps along each axis, in values.
    """

    storage: str
    dtype: np.dtype[Any]
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Weights(pickle.Unpickler):
    """An unpickler that creates ordered dicts of tensors, and calls nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """The object for a global name of the pickle; refuses all that weights do not need."""
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if module == "torch" and name in _DTYPES:
            return name
        raise TorchFileError(f"it would call {module}.{name}, which weights do not need")

    def persistent_load(self, pid: Any) -> tuple[str, np.dtype[Any]]:
        """The key of a storage, whose values come later, and their type."""
        kind, name, key, *_ = pid
        if kind != "storage":
            raise TorchFileError(f"it refers to a {kind!r}")
        return key, _DTYPES[name]


def _tensor(
    storage: tuple[str, np.dtype[Any]],
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    *_: Any,
) -> _Tensor:
    """Replacement of `torch._utils._rebuild_tensor_v2`."""
    return _Tensor(*storage, offset, shape, strides)


def read(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """Read the arrays that PyTorch 1.0 to 1.5 saved for a model's `state_dict`.

    Such a file is a pickle, which may call any function when it is loaded. Here it can only create
    ordered dicts and tensors of its own values.

    Args:
        content: Of the file that `torch.save` wrote.

    Returns:
        Name -> array, float32 or int64.

    Raises:
        TorchFileError: It is not such a file, or it would call another function.
    """
    stream = io.BytesIO(content)
    try:
        if tuple(_Weights(stream).load() for _ in _BEGINNING) != _BEGINNING:
            raise TorchFileError("it does not begin as one")
        _Weights(stream).load()  # facts of the machine that wrote it
        tensors: dict[str, _Tensor] = _Weights(stream).load()
        keys: Sequence[str] = _Weights(stream).load()
        dtypes = {tensor.storage: tensor.dtype for tensor in tensors.values()}
        storages = {key: _values(stream, dtypes[key]) for key in keys}
        return {name: _array(tensor, storages) for name, tensor in tensors.items()}
    except Exception as error:  # a damaged pickle may raise anything
        raise TorchFileError(
            f"weights that PyTorch 1.0 to 1.5 saved were needed: {error or type(error).__name__}."
        ) from error


def _values(stream: io.BytesIO, dtype: np.dtype[Any]) -> bytes:
    """The bytes of the next storage, which come after the number of its values."""
    size = int.from_bytes(stream.read(8), "little") * dtype.itemsize
    values = stream.read(size)
    if len(values) != size:
        raise TorchFileError("it ends too early")
    return values


def _array(tensor: _Tensor, storages: dict[str, bytes]) -> npt.NDArray[Any]:
    """A copy of a tensor's values as an array."""
    size = tensor.dtype.itemsize
    strides = [stride * size for stride in tensor.strides]
    values = storages[tensor.storage]  # NumPy refuses what would reach beyond them
    view = np.ndarray(tensor.shape, tensor.dtype, values, tensor.offset * size, strides)
    return view.copy(order="C")
