import numpy as np
import pandas as pd
import pytest

from cxr_study.data.images.image_store import Images
from cxr_study.evaluation.predictions import Predictor
from cxr_study.training.network import Network
from surgical_aggregation.checkpoints.checkpoint import Checkpoint
from tiny_model import CLASSES, SIZE, checkpoint

NETWORK = Network("tiny_densenet", SIZE, hidden=0)
PIXELS = np.random.default_rng(1).integers(0, 256, (5, SIZE, SIZE)).astype(np.uint8)
SPLIT = Images(pd.DataFrame({"image": ["d", "a", "c"]}), PIXELS, np.array([3, 0, 2]), "nih")


def predicted(model, predictor=None):
    return (predictor or Predictor(NETWORK)).predict(model, SPLIT)


def test_probabilities_are_the_networks_on_the_images_of_the_table():
    from cxr_study.training.input_pipeline import normalised

    model, found = checkpoint(), predicted(checkpoint())
    assert list(found.probabilities) == list(CLASSES) and found.images is SPLIT
    assert {*found.probabilities.dtypes, found.features.dtype} == {np.dtype(np.float32)}
    columns = [[model.variables[f"head/{c}/{of}"] for c in CLASSES] for of in ("kernel", "bias")]
    kernel, bias = np.stack(columns[0], axis=1), np.concatenate(columns[1])
    weighed = 1 / (1 + np.exp(-(found.features @ kernel + bias)))
    np.testing.assert_allclose(found.probabilities, weighed, rtol=1e-5)
    network = NETWORK.build(len(CLASSES))
    body = {v.path: v for v in network.weights}
    for path in model.variables.keys() & body.keys():
        body[path].assign(model.variables[path])
    body["head/kernel"].assign(kernel)
    body["head/bias"].assign(bias)
    expected = network(normalised(PIXELS[[3, 0, 2]])).numpy()
    np.testing.assert_allclose(found.probabilities, expected, rtol=1e-5)
    assert np.ptp(expected, axis=0).min() > 1e-4  # in another order they would differ


def test_a_model_that_predicts_nan_is_refused():
    broken = checkpoint()
    broken.variables["head/Mass/bias"][:] = np.nan
    with pytest.raises(ValueError, match=r"predicts NaN.*learning rate too high"):
        predicted(broken)


def test_models_of_the_same_classes_share_a_network_and_keep_their_variables(monkeypatch):
    one, other = checkpoint(), checkpoint(seed=1, body_seed=1)
    fewer = Checkpoint({n: v for n, v in one.variables.items() if "Mass" not in n})
    models = one, other, fewer, one
    alone = [predicted(each).probabilities for each in models]
    build, built = Network.build, []
    monkeypatch.setattr(Network, "build", lambda of, n: built.append(n) or build(of, n))
    predictor = Predictor(NETWORK)
    for each, expected in zip(models, alone, strict=True):
        pd.testing.assert_frame_equal(predicted(each, predictor).probabilities, expected)
    assert built == [3, 2]
