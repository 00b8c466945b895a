"""Networks of keras.applications: their names, and their normalisation, once."""

import importlib

import numpy as np
import pytest

from cxr_study.training.backbones import APPLICATIONS, BACKBONES, IMAGENET, normalisation
from cxr_study.training.network import Network, network_of
from keras_features import PREPARED, differences, downloading, exported, loaded, write_weights
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, CheckpointError


def test_every_network_of_keras_applications_has_a_name_here():
    import keras

    there = {name for name in dir(keras.applications) if name[0].isupper()}
    assert set(APPLICATIONS.values()) == there
    assert {*BACKBONES} == {*APPLICATIONS, "small_densenet", "tiny_densenet", "efficientnet_lite0"}


def test_each_gets_its_own_normalisation_and_no_second_one():
    import keras

    grey = np.repeat(np.arange(256, dtype=np.float32)[None, :, None, None], 3, axis=3)
    for backbone, name in APPLICATIONS.items():
        how = normalisation(backbone)
        ours = (grey / how.scale - np.array(how.mean)) / np.array(how.sd)
        module = importlib.import_module(getattr(keras.applications, name).__module__)
        theirs = module.preprocess_input(grey.copy())
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-4, err_msg=backbone)
    assert normalisation("small_densenet") == IMAGENET


@pytest.mark.parametrize("backbone", PREPARED)
def test_a_site_computes_what_keras_does_with_weights_loaded(tmp_path, backbone):
    weights = path = str(tmp_path / "body.weights.h5")
    own = write_weights(backbone, path)
    with downloading(path):
        if backbone == "efficientnetb0":  # whose ImageNet has a factor more
            weights, own = "imagenet", None
        found = differences(backbone, weights, own)
    assert found.features < 1e-4 and found.loss < 1e-3
    if weights == "imagenet":
        model = loaded(found.checkpoint, tmp_path / "best.npz")
        assert exported(model, tmp_path, ["package"]) == {"package": ""}


def test_a_model_of_a_network_that_left_its_normalisation_out_is_refused():
    now = Network("efficientnetb0", 32, 0).facts()
    assert network_of(Checkpoint({}, now)).normalisation.by_variables
    before = {**now, "input": Network("convnexttiny", 32, 0).facts()["input"]}
    with pytest.raises(CheckpointError, match=r"this version prepares .*'by_variables': True"):
        network_of(Checkpoint({}, before))


@pytest.mark.parametrize(("shape", "hidden"), [((), 0), ((5,), 5), ((3, 5), 5)])
def test_a_damaged_hidden_layer_is_left_to_the_check_of_shapes(shape, hidden):
    damaged = Checkpoint({"hidden/kernel": np.ones(shape)}, Network("tiny_densenet", 32, 0).facts())
    assert network_of(damaged).hidden == hidden


@pytest.mark.parametrize("backbone", ["efficientnetb0", "mobilenetv3small"])
def test_a_network_has_the_same_variables_however_many_were_built_before(backbone):
    from cxr_study.training.network import build
    from surgical_aggregation.site.contract.architecture import initial_body

    first, second = (initial_body(build(backbone, 2, image_size=32)) for _ in range(2))
    assert first.variables.keys() == second.variables.keys()
