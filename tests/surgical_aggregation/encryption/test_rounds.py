"""Rounds of encrypted surgical aggregation against plain ones, over FLARE's own components."""

import numpy as np
import pytest
from nvflare.apis.dxo import from_shareable
from nvflare.app_common.app_constant import AppConstants

pytest.importorskip("tenseal", reason="homomorphic encryption needs TenSEAL: the extra 'he'")

import encrypted
from flare import context, result
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load, save
from surgical_aggregation.encryption.ciphertext import decrypted, is_packed
from surgical_aggregation.server.access.class_filters import CheckResult, SelectHead
from surgical_aggregation.server.models.aggregator import SurgicalAggregator
from surgical_aggregation.server.models.global_model import (
    GlobalModel,
    MergeIntoGlobalModel,
    from_learnable,
    to_learnable,
)
from surgical_aggregation.wire import variables as wire

SITES = {
    "north": ("Edema", "Nodule/Mass", "Pleural Effusion"),
    "south": ("Épanchement", "Edema", "Fracture"),
    "west": ("Fracture", "Support Devices"),  # absent in the second round
}
FEATURES = 5
BATCH_NORM = {"bn/gamma", "bn/moving_mean", "bn/moving_variance"}
IMAGES = {"north": 40_000, "south": 24, "west": 1600}


def body(rng):
    return {
        "conv/kernel": rng.normal(size=(3, 3, 7, 80)).astype(
            np.float32
        ),  # more than one ciphertext
        "dense/bias": rng.normal(size=4).astype(np.float32),
    }


def trained(site, round_, tasks):
    """What a site makes of what it received: the same for the same task, near enough."""
    rng = np.random.default_rng([round_, len(site), ord(site[0])])
    start, columns = wire.split(tasks)
    sent = {name: 0.5 * start[name] + value for name, value in body(rng).items()}
    head = {}
    for name in SITES[site]:
        column = (rng.normal(size=FEATURES).astype(np.float32), rng.normal(size=1).astype("f4"))
        head[name] = tuple(
            0.5 * a + b for a, b in zip(columns.get(name, (0, 0)), column, strict=True)
        )
    return result(sent, head, current_round=round_, samples=IMAGES[site])


def run(aggregator, encrypt, decrypt):
    """Two rounds; the global model and what each site received, by round."""
    start = {**body(np.random.default_rng(1)), **dict.fromkeys(BATCH_NORM, np.ones(4, np.float32))}
    generator, select, check = MergeIntoGlobalModel(), SelectHead(), CheckResult()
    older = GlobalModel(start, {"head_features": FEATURES})  # which does not say what is what
    model = to_learnable(older)
    received = []
    for round_, sites in enumerate((SITES, ("north", "south"))):
        at = {"current_round": round_, "model": from_learnable(model)}
        task = generator.learnable_to_shareable(model, context(**at))
        for site in sites:
            fl_ctx = encrypted.insecure(context(site, SITES[site], **at))
            data = decrypt(select.process(task, fl_ctx))
            received.append(data)
            sent = encrypt(trained(site, round_, data))
            sent.add_cookie(AppConstants.CONTRIBUTION_ROUND, round_)
            assert aggregator.accept(check.process(sent, fl_ctx), fl_ctx)
        aggregate = aggregator.aggregate(context(**at))
        model = generator.shareable_to_learnable(aggregate, context(**at))
        aggregator.reset(context(**at))
    return from_learnable(model), received


def whole(shareable):
    return from_shareable(shareable).data


@pytest.fixture(scope="module", params=["mean", "samples"])
def both(request, provisioned):
    weighting = request.param
    plain = run(
        SurgicalAggregator(body_weighting=weighting, head_weighting=weighting), lambda s: s, whole
    )
    secret = run(
        encrypted.aggregator(weighting=weighting),
        lambda s: encrypted.encrypted(s, weighting=weighting),
        encrypted.decrypted,
    )
    return plain, secret


def close(one, other):
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert (value.shape, value.dtype) == (other[name].shape, other[name].dtype)
        np.testing.assert_allclose(value, other[name], rtol=0, atol=1e-5)


def test_encrypted_is_plain_surgical_aggregation(both, contexts, tmp_path):
    (plain, _), (secret, _) = both
    path = tmp_path / "last.npz"  # through the disk, as a site gets it
    save(Checkpoint(wire.join(secret.body, secret.columns), secret.manifest), path)
    opened = decrypted(load(path), contexts.site)
    close(opened.variables, wire.join(plain.body, plain.columns))
    assert {**opened.manifest, "format": 1} == {**plain.manifest, "format": 1}


def test_sites_receive_what_they_would_in_the_clear(both):
    (_, plain), (_, secret) = both
    assert len(plain) == 5
    for one, other in zip(secret, plain, strict=True):
        close(one, other)


def test_server_has_every_class_and_reads_none(both):
    _, (secret, _) = both
    assert set(secret.columns) == {name for labelled in SITES.values() for name in labelled}
    assert all(is_packed(part) for column in secret.columns.values() for part in column)
    legible = {name for name, value in secret.body.items() if not is_packed(value)}
    assert legible == BATCH_NORM  # no site sends it
    last = {name: entry["last_round"] for name, entry in secret.manifest["classes"].items()}
    assert last["Support Devices"] == 0  # whose only site was away in the second round
    assert last["Fracture"] == last["Nodule/Mass"] == 1
