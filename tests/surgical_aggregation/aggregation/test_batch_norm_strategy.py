"""Kinds of a body's variables, and what a strategy makes of them."""

import json
import re

import numpy as np
import pytest

from surgical_aggregation.aggregation import batch_norm_strategy as strategies
from surgical_aggregation.aggregation.batch_norm_strategy import VariableKinds, kinds_of
from surgical_aggregation.checkpoints.manifest import Manifest
from surgical_aggregation.extras import PartError

BATCH_NORM = frozenset(f"bn/{n}" for n in ("gamma", "beta", "moving_mean", "moving_variance"))
CONSTANT = frozenset({"normalization/mean"})
KINDS = VariableKinds(BATCH_NORM, CONSTANT)
PATHS = BATCH_NORM | CONSTANT | {"block1/kernel", "block2/kernel"}


class LastBlock(strategies.Strategy):
    """The last block stays at the site."""

    def personal(self, body, kinds):
        return frozenset(path for path in body if path.startswith("block2/"))


@pytest.mark.parametrize(("name", "kept", "personal"), [
    ("fedavg", set(), set()), ("fixbn", KINDS.statistics, set()),
    ("fedbn", BATCH_NORM, BATCH_NORM), ("fedbn+", BATCH_NORM, set()),
])  # fmt: skip
def test_what_becomes_of_batch_norm(name, kept, personal):
    assert strategies.kept_at_site(name, PATHS, KINDS) == kept | CONSTANT
    assert strategies.find(name).personal(PATHS, KINDS) == personal
    assert strategies.has_personal(name) == bool(personal)
    assert strategies.has_personal(name, personal_head=True)


def test_one_of_ones_own_sees_the_paths_of_all_variables():
    own = LastBlock()
    assert strategies.kept_at_site(own, PATHS, KINDS) == CONSTANT | {"block2/kernel"}
    assert strategies.has_personal(own) and strategies.find(own) is own
    manifest = Manifest().with_strategy(own)
    assert manifest.has_personal_body and manifest["strategy"].endswith(".LastBlock")
    assert not Manifest().with_strategy("fedbn+").has_personal_body


def test_an_unknown_name_is_refused_and_never_imported():
    for name in ("fedprox", "os:system", "os.system", "test_batch_norm_strategy:LastBlock", ""):
        with pytest.raises(PartError, match=r"strategy must be one of \('fedavg', 'fedbn',"):
            strategies.find(name)
        assert not strategies.has_personal(name)
    with pytest.raises(PartError, match=r"strategy must be .*, or a class path .*; got {'path': "):
        strategies.find({"path": "os.system"})


class Keeps(strategies.Strategy):
    def __init__(self, *paths):
        self.paths = paths

    def personal(self, body, kinds):
        return frozenset(self.paths)


@pytest.mark.parametrize(("keeps", "got"), [
    ((), "none"), (("dense4/kernel",), "dense4/kernel"), (("conv/kernel", "late/kernel"), "late/"),
])  # fmt: skip
def test_a_strategy_that_keeps_what_the_body_lacks_is_refused_with_what_it_has(keeps, got):
    body = {"conv/kernel": np.ones(1), "conv/bias": np.ones(1)}
    message = rf"strategy 'Keeps' .* it names {got}.* The body has 2, such as conv/bias, conv/kern"
    with pytest.raises(strategies.StrategyError, match=message):
        strategies.check_body(Keeps(*keeps), body, VariableKinds())
    strategies.check_body(Keeps("conv/bias"), body, VariableKinds())
    with pytest.raises(strategies.StrategyError, match=r"'fedbn' .* it names none"):
        strategies.check_body("fedbn", body, VariableKinds())
    for other in ("fedavg", "fedbn+"):
        strategies.check_body(other, body, VariableKinds())


@pytest.mark.parametrize("name", ["fedbn+", "fixbn"])
def test_batch_norm_that_has_seen_no_image_cannot_be_frozen_but_trained(name):
    fresh = {path: np.full(2, float("variance" in path), np.float32) for path in BATCH_NORM}
    body = fresh | {path.replace("bn", "late"): value for path, value in fresh.items()}
    kinds = VariableKinds(frozenset(body), CONSTANT)
    message = rf"strategy '{re.escape(name)}'.*all 4 variables.*'fedavg' or 'fedbn', or .*trained"
    frozen = strategies.find(name)
    with pytest.raises(strategies.StrategyError, match=message):
        frozen.check_start(body, kinds)
    for other in ("fedavg", "fedbn"):
        strategies.find(other).check_start(body, kinds)
    frozen.check_start(body, VariableKinds())  # without batch normalisation
    for seen in ("late/moving_mean", "late/moving_variance"):  # of one layer is enough
        frozen.check_start(body | {seen: np.float32([0.1, 0.9])}, kinds)


def test_kinds_are_what_the_manifest_says_whatever_the_names():
    body = {"dense/kernel": np.ones(2), "bn/moving_mean": np.ones(2), "bn/moving_variance": 0}
    kinds = VariableKinds(frozenset({"dense/kernel"}), frozenset({"layer_norm/gamma"}))
    written = json.loads(json.dumps(kinds.facts()))
    assert kinds_of({"head_features": 2, **written}, body) == kinds
    assert kinds_of(VariableKinds().facts(), body) == VariableKinds()


def test_kinds_of_an_older_checkpoint_follow_from_names_and_dtypes():
    batch_norm = {*BATCH_NORM, "unscaled/moving_mean", "unscaled/moving_variance"}
    others = ("layer_norm/gamma", "layer_norm/beta", "average/moving_mean", "dense/kernel")
    body = dict.fromkeys([*batch_norm, *others], np.ones(2, np.float32))
    body |= {"normalization/count": np.zeros((), np.int32), "mask": np.ones(2, bool)}
    kinds = kinds_of({}, body)
    assert kinds.batch_norm == batch_norm
    assert kinds.constant == {"normalization/count", "mask"}
    assert kinds.statistics == {path for path in batch_norm if "/moving_" in path}
