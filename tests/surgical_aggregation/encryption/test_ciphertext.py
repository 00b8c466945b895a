import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("tenseal", reason="homomorphic encryption needs TenSEAL: the extra 'he'")

import tenseal

from surgical_aggregation.checkpoints.checkpoint import Checkpoint
from surgical_aggregation.encryption.ciphertext import (
    CiphertextError,
    decrypted,
    form,
    is_packed,
    pack,
    plain,
    unpack,
)

VALUES = np.float32([[1, 2, 3], [4, 5, 6]])


@pytest.fixture
def packed(contexts):
    return pack(tenseal.ckks_vector(contexts.site, VALUES.ravel()), VALUES)


def test_a_packed_ciphertext_is_an_array_that_numpy_stores(packed, tmp_path):
    np.save(tmp_path / "c.npy", packed)
    again = np.load(tmp_path / "c.npy", allow_pickle=False)
    assert is_packed(again)
    assert again.tobytes() == packed.tobytes()
    assert not is_packed(VALUES)


def test_values_come_back_with_the_secret_key_alone(packed, contexts):
    assert (form(packed).shape, form(packed).dtype) == (VALUES.shape, VALUES.dtype)
    back = plain(packed, contexts.site)
    assert (back.shape, back.dtype) == (VALUES.shape, VALUES.dtype)
    np.testing.assert_allclose(back, VALUES, atol=1e-5)
    assert not contexts.server.is_private()
    with pytest.raises(CiphertextError, match=r"with the secret key.*client_context"):
        decrypted(Checkpoint({"a": packed}), contexts.server)


def test_decrypting_a_checkpoint_leaves_what_is_plain(packed, contexts):
    opened = decrypted(Checkpoint({"a": packed, "b": VALUES}, {"round": 2}), contexts.site)
    np.testing.assert_allclose(opened.variables["a"], VALUES, atol=1e-5)
    assert opened.variables["b"] is VALUES
    assert opened.manifest == {"round": 2}


def test_rubbish_or_a_form_of_another_size_is_refused(contexts):
    for rubbish in (
        b"", b"\xff\x00", b"[1, 2]\n", b'["<f4", [-1]]\n', b'["<f4", [6]]\nno ciphertext', b"{}\n",
    ):  # fmt: skip
        with pytest.raises(CiphertextError):
            unpack(np.frombuffer(rubbish, np.uint8), contexts.server)
    liar = pack(tenseal.ckks_vector(contexts.site, [1.0, 2.0]), VALUES)
    with pytest.raises(CiphertextError, match="needs 6 values; got 2"):
        unpack(liar, contexts.server)


def test_tensorflow_first_is_refused_instead_of_a_crash():
    code = "import sys; sys.modules['tensorflow'] = sys; import surgical_aggregation.encryption"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "tenseal to be imported before TensorFlow" in done.stderr
