import io
import os
import pickle
import sys
from collections import OrderedDict
from types import ModuleType

import numpy as np
import pytest

from cxr_pretrained.torch_file import _BEGINNING, TorchFileError, read

VALUES = np.arange(6, dtype="<f4")


class Storage:
    """What a tensor refers to."""


class Made:
    """It is saved as what makes it again, such as a tensor of PyTorch."""

    def __init__(self, function, *arguments):
        self.made = function, arguments

    def __reduce__(self):
        return self.made


@pytest.fixture
def saved(monkeypatch):
    """Makes a file of one tensor "a", or of whatever stands there in place of it."""
    torch, utils = ModuleType("torch"), ModuleType("torch._utils")

    def _rebuild_tensor_v2():
        """By its name alone."""

    _rebuild_tensor_v2.__module__ = "torch._utils"
    _rebuild_tensor_v2.__qualname__ = "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = _rebuild_tensor_v2
    torch.FloatStorage = type("FloatStorage", (), {"__module__": "torch"})
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)

    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            if isinstance(value, Storage):
                return "storage", torch.FloatStorage, "7", "cpu", len(VALUES), None
            return None

    def saved(what=None, values=VALUES, beginning=_BEGINNING, **how):
        stream = io.BytesIO()
        of = {"offset": 0, "shape": (2, 3), "strides": (3, 1)} | how
        tensor = Made(_rebuild_tensor_v2, Storage(), *of.values(), False, OrderedDict())
        for part in (*beginning, {}, OrderedDict(a=what or tensor), ["7"]):
            Pickler(stream, protocol=2).dump(part)
        return stream.getvalue() + len(values).to_bytes(8, "little") + values.tobytes()

    return saved


@pytest.mark.parametrize(("how", "expected"), [
    ({}, [[0, 1, 2], [3, 4, 5]]), ({"strides": (1, 2)}, [[0, 2, 4], [1, 3, 5]]),
    ({"shape": (2,), "strides": (1,), "offset": 4}, [4, 5]), ({"shape": (), "strides": ()}, 0),
])  # fmt: skip
def test_a_tensor_is_read_wherever_its_values_are(saved, how, expected):
    (array,) = read(saved(**how)).values()
    assert array.dtype == np.float32 and array.flags.owndata
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("how", [
    {"shape": (3, 3)}, {"offset": 1}, {"offset": -1}, {"strides": (4, 1)}, {"strides": (-3, 1)},
    {"values": VALUES[:5]}, {"beginning": (1, 2)},
])  # fmt: skip
def test_nothing_beyond_its_values_is_read(saved, how):
    with pytest.raises(TorchFileError, match=r"weights that PyTorch .* saved were needed"):
        read(saved(**how))


@pytest.mark.parametrize("call", [os.system, eval, exec, getattr, __import__, print])
def test_a_file_that_would_call_something_calls_nothing(saved, call, capsys):
    with pytest.raises(TorchFileError, match=f"would call .*{call.__name__}, which weights do not"):
        read(saved(Made(call, "print('owned')")))
    assert "owned" not in capsys.readouterr().out


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_half_a_file_is_refused(saved, share):
    whole = saved()
    with pytest.raises(TorchFileError):
        read(whole[: int(share * len(whole))])
