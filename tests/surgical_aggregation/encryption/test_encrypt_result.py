import numpy as np
import pytest
from nvflare.apis.dxo import MetaKey, from_shareable
from nvflare.apis.shareable import ReturnCode, make_reply

pytest.importorskip("tenseal", reason="homomorphic encryption needs TenSEAL: the extra 'he'")

import encrypted
from flare import context, result
from surgical_aggregation.aggregation.weighting import WeightingError
from surgical_aggregation.encryption.ciphertext import form, is_packed, plain
from surgical_aggregation.encryption.encrypt_result import EncryptResult

pytestmark = pytest.mark.usefixtures("provisioned")

KERNEL = np.float32([[1, 2], [3, 4]])
COLUMN = (np.float32([5, 6]), np.float32([7]))


def sent(**arguments):
    shareable = result(
        {"conv/kernel": KERNEL}, {"Edema": COLUMN}, samples=100, metrics={"bce": 1.0}
    )
    return from_shareable(encrypted.encrypted(shareable, **arguments))


def test_every_variable_leaves_encrypted_and_metrics_and_images_legible():
    dxo = sent()
    assert sorted(dxo.data) == ["conv/kernel", "head/Edema/bias", "head/Edema/kernel"]
    assert all(is_packed(value) for value in dxo.data.values())
    assert form(dxo.data["conv/kernel"]).shape == (2, 2)
    assert dxo.meta[MetaKey.INITIAL_METRICS] == {"bce": 1.0}
    assert dxo.meta[MetaKey.NUM_STEPS_CURRENT_ROUND] == 100


@pytest.mark.parametrize(("weighting", "factor"), [("mean", 1), ("samples", 100)])
def test_values_are_weighed_before_they_are_encrypted(weighting, factor, contexts):
    value = plain(sent(weighting=weighting).data["conv/kernel"], contexts.site)
    np.testing.assert_allclose(value, factor * KERNEL, atol=1e-4)


def test_an_error_reply_passes_and_positives_cannot_weigh_ciphertexts():
    reply = make_reply(ReturnCode.EXECUTION_EXCEPTION)
    assert EncryptResult().process(reply, context("server")) is reply
    with pytest.raises(WeightingError, match="got 'positives'"):
        EncryptResult(weighting="positives")


def test_without_a_context_nothing_leaves(monkeypatch, tmp_path):
    filter_ = EncryptResult(tenseal_context_file="elsewhere.tenseal")
    with pytest.raises(ValueError, match=r"elsewhere\.tenseal"):
        filter_.process(result({"a": KERNEL}, {}), encrypted.insecure(context("server")))
