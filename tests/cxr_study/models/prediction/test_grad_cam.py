import numpy as np
import pytest

from cxr_study.models.loaded_model import load_model
from tiny_model import CLASSES, SIZE, saved


@pytest.mark.parametrize("hidden", [0, 5])
def test_the_heat_is_the_weighted_sum_of_the_pooled_maps(tmp_path, hidden):
    from cxr_study.models.prediction.grad_cam import heat_maps

    model = load_model(saved(tmp_path / "best.npz", hidden=hidden))
    pixels = np.random.default_rng(0).integers(0, 256, (SIZE, SIZE)).astype(np.uint8)
    heats = heat_maps(model.local, pixels, CLASSES[:2])
    assert list(heats) == list(CLASSES[:2])
    if hidden:
        assert all(0 <= heat.min() and heat.max() <= 1 for heat in heats.values())
        return
    import keras

    from cxr_study.training.input_pipeline import normalised

    network = model.local.model
    maps = keras.Model(network.input, network.get_layer("final_pool").input)(
        normalised(pixels[None])
    )[0].numpy()
    kernel = network.get_layer("head").get_weights()[0]
    for k, name in enumerate(CLASSES[:2]):
        expected = np.maximum(maps @ kernel[:, k], 0)  # CAM: the head's own weights
        np.testing.assert_allclose(heats[name], expected / expected.max(), atol=1e-4)
        assert np.ptp(expected) > 0
