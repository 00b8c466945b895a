"""The encrypted aggregator's own: what it can check without a key, and FLARE's HE as an oracle."""

import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import ReservedKey
from nvflare.app_common.app_constant import AppConstants

pytest.importorskip("tenseal", reason="homomorphic encryption needs TenSEAL: the extra 'he'")

import tenseal
from nvflare.app_opt.he import intime_accumulate_model_aggregator as flares

import encrypted
from flare import column, context, global_model, result
from surgical_aggregation.encryption import contexts as kits
from surgical_aggregation.encryption.ciphertext import pack, plain, unpack
from surgical_aggregation.encryption.encrypted_aggregator import EncryptedSurgicalAggregator
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import REFUSAL

pytestmark = pytest.mark.usefixtures("provisioned")

SHAPE = (2, 2500)
"""More numbers than one ciphertext holds."""

MODEL = global_model({"conv/kernel": np.zeros(SHAPE, np.float32)})
KERNEL = np.ones(SHAPE, np.float32)


def train(value, classes, samples=None, kind=DataKind.WEIGHTS):
    columns = dict.fromkeys(classes, column(value))
    return result({"conv/kernel": value * KERNEL}, columns, samples=samples, kind=kind)


def secret(value, classes, weighting="mean", **facts):
    shareable = encrypted.encrypted(train(value, classes, **facts), weighting=weighting)
    shareable.add_cookie(AppConstants.CONTRIBUTION_ROUND, 0)
    return shareable


def give(aggregator, site, sent, model=MODEL):
    """Why a site's result is refused; None when it is taken."""
    fl_ctx = encrypted.insecure(context(site, model=model))
    taken = aggregator.accept(sent, fl_ctx)
    return None if taken else fl_ctx.get_prop(REFUSAL)["reason"]


def test_body_over_all_sites_and_columns_over_those_with_the_class(contexts):
    aggregator = encrypted.aggregator()
    for site, value, classes in (("a", 2, ("Edema", "Mass")), ("b", 4, ("Edema",))):
        assert give(aggregator, site, secret(value, classes)) is None
    dxo = from_shareable(aggregator.aggregate(context(model=MODEL)))
    body, columns = wire.split({name: plain(v, contexts.site) for name, v in dxo.data.items()})
    np.testing.assert_allclose(body["conv/kernel"], 3 * KERNEL, atol=1e-4)
    values = {name: round(float(kernel[0]), 4) for name, (kernel, _) in columns.items()}
    assert values == {"Edema": 3, "Mass": 2}


@pytest.mark.parametrize("labelled", [(("Edema", "Mass"),) * 2, (("Edema", "Mass"), ("Edema",))])
def test_weighted_by_samples_it_is_flares_encrypted_aggregate(labelled, contexts):
    ours = encrypted.aggregator(weighting="samples")
    how = {"expected_data_kind": DataKind.WEIGHTS, "weigh_by_local_iter": False}
    stock = encrypted.started(flares.HEInTimeAccumulateWeightedAggregator(**how))
    for site, value, classes, samples in zip("ab", (3.0, 5.0), labelled, (10, 30), strict=True):
        sent = secret(value, classes, "samples", samples=samples)
        assert give(ours, site, sent) is None
        dxo = from_shareable(sent)
        vectors = {name: unpack(v, contexts.server) for name, v in dxo.data.items()}
        theirs = DXO(dxo.data_kind, data=vectors, meta=dxo.meta).to_shareable()
        theirs.add_cookie(AppConstants.CONTRIBUTION_ROUND, 0)
        theirs.set_peer_props({ReservedKey.IDENTITY_NAME: site})
        assert give(stock, site, theirs) is None
    averaged = from_shareable(ours.aggregate(context(model=MODEL))).data
    expected = from_shareable(stock.aggregate(context(model=MODEL))).data
    assert averaged.keys() == expected.keys()
    secret_key = contexts.site.secret_key()
    for name, vector in expected.items():
        value = plain(averaged[name], contexts.site).ravel()
        np.testing.assert_allclose(value, vector.decrypt(secret_key), rtol=0, atol=1e-5)


def changed(name, value):
    """A site's result with another value of a variable; None: without the variable."""
    shareable = secret(1, ["Edema"])
    dxo = from_shareable(shareable)
    dxo.data = {key: v for key, v in {**dxo.data, name: value}.items() if v is not None}
    return dxo.update_shareable(shareable)


def zeros(key, size=1, multiplied=False, **how):
    """A ciphertext of zeros."""
    vector = tenseal.ckks_vector(key, [0.0] * size, **how)
    return pack(vector * 2.0 if multiplied else vector, np.zeros(size, np.float32))


BIAS, LEVEL = "head/Edema/bias", "context's scale and first level"
RUBBISH = np.frombuffer(b'["<f4", [1]]\nrubbish', np.uint8)
REFUSED = {
    "clear": (lambda _: train(1, ["Edema"]), "3 variables came in the clear, e.g. 'conv/kernel'"),
    "one clear": (lambda _: changed(BIAS, np.zeros(1, "f4")), "1 variables came in the clear"),
    "differences": (lambda _: secret(1, ["Edema"], kind=DataKind.WEIGHT_DIFF), "weights were"),
    "shape": (lambda key: changed("conv/kernel", zeros(key, 4)), "(2, 2500); got (4,)"),
    "missing": (lambda _: changed("conv/kernel", None), "'conv/kernel' are missing"),
    "no head": (lambda _: secret(1, []), "the head is empty"),
    "scale": (lambda key: changed(BIAS, zeros(key, scale=2**30)), LEVEL),
    "level": (lambda key: changed(BIAS, zeros(key, multiplied=True)), LEVEL),
    "no ciphertext": (lambda _: changed(BIAS, RUBBISH), f"'{BIAS}' cannot be added"),
}


@pytest.mark.parametrize(("sent", "reason"), REFUSED.values(), ids=REFUSED)
def test_refuses(sent, reason, contexts):
    assert reason in give(encrypted.aggregator(), "a", sent(contexts.site))


def test_the_weighting_needs_its_count_and_is_not_by_positives():
    by_samples = encrypted.aggregator(weighting="samples")
    assert "needs the number of images" in give(by_samples, "a", secret(1, ["Edema"]))
    with pytest.raises(ValueError, match=r"weighting must be one of .* got 'positives'"):
        EncryptedSurgicalAggregator(weighting="positives")


def test_a_second_round_compares_with_a_model_that_is_encrypted():
    model = global_model(*wire.split(from_shareable(secret(1, ["Edema"])).data))
    assert give(encrypted.aggregator(), "a", secret(2, ["Edema"]), model) is None


def test_a_server_without_a_context_ends_the_run_with_the_reason(panics, monkeypatch):
    monkeypatch.setattr(kits, "SERVER", "elsewhere.tenseal")
    aggregator = EncryptedSurgicalAggregator()
    aggregator.handle_event(EventType.START_RUN, encrypted.insecure(context("server")))
    assert "needs elsewhere.tenseal in the startup folder" in panics[0] and "HEBuilder" in panics[0]
