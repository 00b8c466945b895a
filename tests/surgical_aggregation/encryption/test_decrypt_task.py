import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind, from_shareable

pytest.importorskip("tenseal", reason="homomorphic encryption needs TenSEAL: the extra 'he'")

import tenseal

import encrypted
from flare import context
from surgical_aggregation.checkpoints.checkpoint import digest
from surgical_aggregation.encryption.ciphertext import pack
from surgical_aggregation.encryption.decrypt_task import DecryptTask
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import INITIAL_BODY

pytestmark = pytest.mark.usefixtures("provisioned")

KERNEL = np.float32([[1, 2], [3, 4]])
GAMMA = np.float32([1])


def task(data, initial=None):
    shareable = DXO(DataKind.WEIGHTS, data=data).to_shareable()
    if initial is not None:
        shareable.set_header(INITIAL_BODY, initial)
    return shareable


def processed(shareable):
    filter_ = encrypted.started(DecryptTask())
    return filter_.process(shareable, encrypted.insecure(context("server")))


@pytest.fixture
def secret(contexts):
    """A body with one variable encrypted, one not, and an encrypted column."""

    def hide(value):
        return pack(tenseal.ckks_vector(contexts.site, value.ravel()), value)

    column = {"Edema": (hide(np.float32([5, 6])), hide(np.float32([7])))}
    return wire.join({"conv/kernel": hide(KERNEL), "bn/gamma": GAMMA}, column)


def test_ciphertexts_become_arrays_in_their_own_shape(secret):
    data = from_shareable(processed(task(secret))).data
    assert {name: (value.shape, value.dtype) for name, value in data.items()} == {
        "conv/kernel": ((2, 2), np.float32),
        "bn/gamma": ((1,), np.float32),
        "head/Edema/kernel": ((2,), np.float32),
        "head/Edema/bias": ((1,), np.float32),
    }
    np.testing.assert_allclose(data["conv/kernel"], KERNEL, atol=1e-5)
    assert data["bn/gamma"].tobytes() == GAMMA.tobytes()


def test_a_model_in_the_clear_passes():
    data = from_shareable(processed(task({"conv/kernel": KERNEL}, "abc"))).data
    assert data["conv/kernel"] is KERNEL


def test_digest_of_an_encrypted_initial_body_becomes_that_of_the_decrypted_one(secret):
    body, _ = wire.split(secret)
    out = processed(task(secret, digest(body)))
    opened, _ = wire.split(from_shareable(out).data)
    assert out.get_header(INITIAL_BODY) == digest(opened)
    with pytest.raises(SiteError, match="sha256 abc; this site received another"):
        processed(task(secret, "abc"))


def test_needs_the_sites_context(secret):
    filter_ = DecryptTask(tenseal_context_file="elsewhere.tenseal")
    with pytest.raises(ValueError, match=r"elsewhere\.tenseal"):
        filter_.process(task(secret), encrypted.insecure(context("server")))
