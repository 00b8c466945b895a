import json

import numpy as np

from surgical_aggregation.aggregation.variable_kinds import VariableKinds, kinds_of

BODY = {
    "backbone/bn/gamma": np.ones(2, np.float32),
    "backbone/bn/beta": np.ones(2, np.float32),
    "backbone/bn/moving_mean": np.ones(2, np.float32),
    "backbone/bn/moving_variance": np.ones(2, np.float32),
    "unscaled/moving_mean": np.ones(2, np.float32),
    "unscaled/moving_variance": np.ones(2, np.float32),
    "layer_norm/gamma": np.ones(2, np.float32),
    "layer_norm/beta": np.ones(2, np.float32),
    "average/moving_mean": np.ones(2, np.float32),
    "dense/kernel": np.ones((2, 2), np.float32),
    "normalization/count": np.zeros((), np.int32),
    "mask": np.ones(2, bool),
}
BATCH_NORM = {path for path in BODY if path.startswith(("backbone/bn/", "unscaled/"))}


def test_kinds_are_what_the_manifest_says_whatever_the_names():
    kinds = VariableKinds(frozenset({"dense/kernel"}), frozenset({"layer_norm/gamma"}))
    written = json.loads(json.dumps(kinds.facts()))
    assert kinds_of({"head_features": 2, **written}, BODY) == kinds
    assert kinds_of(VariableKinds().facts(), BODY) == VariableKinds()


def test_of_an_older_checkpoint_they_follow_from_names_and_dtypes():
    kinds = kinds_of({}, BODY)
    assert kinds.batch_norm == BATCH_NORM
    assert kinds.constant == {"normalization/count", "mask"}
    assert kinds.statistics == {path for path in BATCH_NORM if "/moving_" in path}
