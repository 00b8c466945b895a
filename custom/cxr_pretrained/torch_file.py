"""Weights that PyTorch saved, read without PyTorch; needs no Keras either."""

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
    """It is no file of weights that PyTorch 1.0 to 1.5 saved, is damaged, or holds more."""


@dataclass(frozen=True)
class _Tensor:
    """Where the values of a tensor are: in which storage, from where, and how far apart."""

    storage: str
    dtype: np.dtype[Any]
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Weights(pickle.Unpickler):
    """An unpickler that makes ordered dicts of tensors, and calls nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """What a name stands for."""
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
    return _Tensor(*storage, offset, shape, strides)


def read(content: bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays that `torch.save` of PyTorch 1.0 to 1.5 wrote for a model's `state_dict`, by name.

    Such a file is a pickle, which may call anything where it is loaded. Here it can make ordered
    dicts and tensors of its own values alone.

    Raises:
        TorchFileError: See there.
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
    """The bytes of the next storage; its number of values stands before them."""
    size = int.from_bytes(stream.read(8), "little") * dtype.itemsize
    values = stream.read(size)
    if len(values) != size:
        raise TorchFileError("it ends too early")
    return values


def _array(tensor: _Tensor, storages: dict[str, bytes]) -> npt.NDArray[Any]:
    size = tensor.dtype.itemsize
    strides = [stride * size for stride in tensor.strides]
    values = storages[tensor.storage]  # NumPy refuses what would reach beyond them
    view = np.ndarray(tensor.shape, tensor.dtype, values, tensor.offset * size, strides)
    return view.copy(order="C")
