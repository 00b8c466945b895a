"""Ciphertexts, and the two filters by which a site makes and opens them."""

import subprocess
import sys

import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.shareable import ReturnCode, Shareable, make_reply

pytest.importorskip("tenseal", reason="homomorphic encryption needs TenSEAL: the extra 'he'")

import tenseal

import encrypted
from flare import context, result
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest
from surgical_aggregation.encryption import ciphertext
from surgical_aggregation.encryption.ciphertext import CiphertextError, is_packed, pack, unpack
from surgical_aggregation.encryption.decrypt_task import DecryptTask
from surgical_aggregation.encryption.encrypt_result import EncryptResult
from surgical_aggregation.site import site_answer
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import INITIAL_BODY

pytestmark = pytest.mark.usefixtures("provisioned")

VALUES = np.float32([[1, 2, 3], [4, 5, 6]])
COLUMN = (np.float32([5, 6]), np.float32([7]))
VARIABLES = wire.join({"conv/kernel": VALUES}, {"Edema": COLUMN})


@pytest.fixture
def packed(contexts):
    return pack(tenseal.ckks_vector(contexts.site, VALUES.ravel()), VALUES)


def test_values_come_back_from_a_numpy_file_with_the_secret_key_alone(packed, contexts, tmp_path):
    np.save(tmp_path / "c.npy", packed)
    packed = np.load(tmp_path / "c.npy", allow_pickle=False)
    assert is_packed(packed) and not is_packed(VALUES)
    back = ciphertext.plain(packed, contexts.site)
    for like in (ciphertext.form(packed), back):
        assert (like.shape, like.dtype) == (VALUES.shape, VALUES.dtype)
    np.testing.assert_allclose(back, VALUES, atol=1e-5)
    model = Checkpoint({"a": packed, "b": VALUES}, {"round": 2})
    opened = ciphertext.decrypted(model, contexts.site)
    np.testing.assert_array_equal(opened.variables["a"], back)
    assert opened.variables["b"] is VALUES and opened.manifest == {"round": 2}
    assert not contexts.server.is_private()
    with pytest.raises(CiphertextError, match=r"with the secret key.*client_context"):
        ciphertext.decrypted(Checkpoint({"a": packed}), contexts.server)


def test_rubbish_or_a_form_of_another_size_is_refused(contexts):
    lines = b"[1, 2]\n", b'["<f4", [-1]]\n', b'["<f4", [6]]\nno ciphertext', b"{}\n"
    for rubbish in (b"", b"\xff\x00", *lines):
        with pytest.raises(CiphertextError):
            unpack(np.frombuffer(rubbish, np.uint8), contexts.server)
    liar = pack(tenseal.ckks_vector(contexts.site, [1.0, 2.0]), VALUES)
    with pytest.raises(CiphertextError, match="needs 6 values; got 2"):
        unpack(liar, contexts.server)


def test_tensorflow_first_is_refused_instead_of_a_crash():
    code = "import sys; sys.modules['tensorflow'] = sys; import surgical_aggregation.encryption"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and "tenseal to be imported before TensorFlow" in done.stderr


def secret(**arguments):
    """A site's result as it leaves the site."""
    facts = {"samples": 100, "metrics": {"bce": 1.0}}
    sent = result({"conv/kernel": VALUES}, {"Edema": COLUMN}, **facts)
    return from_shareable(encrypted.encrypted(sent, **arguments))


def processed(data, initial=None, filter_=None):
    """A task after the site's filter."""
    shareable = DXO(DataKind.WEIGHTS, data=data).to_shareable()
    shareable.set_header(INITIAL_BODY, initial)
    filter_ = filter_ or encrypted.started(DecryptTask())
    return filter_.process(shareable, encrypted.insecure(context("server")))


@pytest.mark.parametrize(("weighting", "factor"), [("mean", 1), ("samples", 100)])
def test_every_variable_leaves_weighed_and_encrypted_and_comes_back_in_its_form(weighting, factor):
    dxo = secret(weighting=weighting)
    assert dxo.data.keys() == VARIABLES.keys() and all(map(is_packed, dxo.data.values()))
    assert dxo.meta[MetaKey.INITIAL_METRICS] == {"bce": 1.0}
    assert dxo.meta[MetaKey.NUM_STEPS_CURRENT_ROUND] == 100
    opened = from_shareable(processed({**dxo.data, "bn/gamma": COLUMN[0]})).data
    assert opened.pop("bn/gamma").tobytes() == COLUMN[0].tobytes()  # which came in the clear
    assert opened.keys() == VARIABLES.keys()
    for name, value in VARIABLES.items():
        assert (opened[name].shape, opened[name].dtype) == (value.shape, value.dtype)
        np.testing.assert_allclose(opened[name], factor * value, atol=1e-4)


def test_an_error_reply_and_a_model_in_the_clear_pass_and_positives_cannot_weigh():
    reply = make_reply(ReturnCode.EXECUTION_EXCEPTION)
    assert EncryptResult().process(reply, context("server")) is reply
    assert from_shareable(processed({"conv/kernel": VALUES}, "a")).data["conv/kernel"] is VALUES
    with pytest.raises(ValueError, match="got 'positives'"):
        EncryptResult(weighting="positives")


def test_digest_of_an_encrypted_initial_body_becomes_that_of_the_decrypted_one():
    data = secret().data
    out = processed(data, digest(wire.split(data)[0]))
    opened, _ = wire.split(from_shareable(out).data)
    assert out.get_header(INITIAL_BODY) == digest(opened)
    with pytest.raises(SiteError, match="sha256 abc; this site received another"):
        processed(data, "abc")


@pytest.mark.parametrize("filter_", [EncryptResult, DecryptTask])
def test_without_the_sites_keys_nothing_leaves_or_comes_and_it_gets_instructions(filter_, packed):
    fl_ctx, without = encrypted.insecure(context("server")), filter_()
    without.tenseal_context_file = "elsewhere.tenseal"
    with pytest.raises(ValueError, match=r"elsewhere\.tenseal"):
        processed({"a": packed}, filter_=without)
    without.handle_event(EventType.START_RUN, fl_ctx)
    needed = r"needs elsewhere\.tenseal in the startup folder: .* `nvflare poc prepare -he`"
    with pytest.raises(SiteError, match=needed):
        site_answer.check(Shareable(), None, fl_ctx)
