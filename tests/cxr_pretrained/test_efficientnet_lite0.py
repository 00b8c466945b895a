"""EfficientNet-Lite0 with its ImageNet weights, against an own forward pass and known pictures."""

from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_image

from cxr_pretrained import efficientnet_lite0
from cxr_pretrained.efficientnet_lite0 import EFFICIENTNET_LITE0, WeightsError
from cxr_pretrained.torch_file import read

STRIDES = (1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1)
"""Of the sixteen blocks."""


@pytest.fixture(scope="module")
def arrays():
    return read(efficientnet_lite0._content())


@pytest.fixture(scope="module")
def network():
    """Makes the network with its weights, for pictures of some size."""

    def network(side):
        body = EFFICIENTNET_LITE0.build((side, side, 3))
        EFFICIENTNET_LITE0.weights["imagenet"](body)
        return body

    return network


def convolved(x, kernel, stride):
    """A convolution of one picture in float64, padded as TensorFlow does; kernel as in PyTorch."""
    out, _, side, _ = kernel.shape
    size = -(-x.shape[0] // stride)
    missing = max((size - 1) * stride + side - x.shape[0], 0)
    edges = (missing // 2, missing - missing // 2)
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(x, (edges, edges, (0, 0))), (side, side), (0, 1)
    )[::stride, ::stride]
    if kernel.shape[1] == 1 and x.shape[2] == out:  # depthwise
        return np.einsum("xychw,chw->xyc", windows, kernel[:, 0])
    return np.einsum("xychw,ochw->xyo", windows, kernel, optimize=True)


def features(x, arrays):
    """Of one normalised picture, straight from the file's arrays."""

    def step(x, convolution, batch_norm, stride=1, linear=False):
        x = convolved(x, arrays[f"{convolution}.weight"].astype(float), stride)
        names = ("weight", "bias", "running_mean", "running_var")
        gamma, beta, mean, variance = (arrays[f"{batch_norm}.{n}"].astype(float) for n in names)
        x = (x - mean) / np.sqrt(variance + 1e-3) * gamma + beta
        return x if linear else np.clip(x, 0, 6)

    x = step(x, "_conv_stem", "_bn0", 2)
    for number, stride in enumerate(STRIDES):
        block, entering = f"_blocks.{number}", x
        if f"{block}._expand_conv.weight" in arrays:
            x = step(x, f"{block}._expand_conv", f"{block}._bn0")
        x = step(x, f"{block}._depthwise_conv", f"{block}._bn1", stride)
        x = step(x, f"{block}._project_conv", f"{block}._bn2", linear=True)
        if x.shape == entering.shape and number > 0:
            x = x + entering
    return step(x, "_conv_head", "_bn1").mean((0, 1))


@pytest.mark.parametrize("side", [33, 64])
def test_its_features_are_those_of_a_forward_pass_by_hand(arrays, network, side):
    picture = np.random.default_rng(1).uniform(-1, 1, (side, side, 3))
    ours = network(side)(picture[None].astype(np.float32)).numpy()[0]
    theirs = features(picture, arrays)
    assert theirs.std() > 0.1
    np.testing.assert_allclose(ours, theirs, atol=2e-5 * np.abs(theirs).max())


@pytest.mark.parametrize(("name", "label"), [("china.jpg", 698), ("flower.jpg", 985)])
def test_it_knows_a_palace_and_a_daisy(arrays, network, name, label):
    picture = Image.fromarray(load_sample_image(name)[:, 106:533])  # its square in the middle
    picture = picture.resize((224, 224), Image.Resampling.BICUBIC)
    found = EFFICIENTNET_LITE0.normalisation
    levels = np.asarray(picture, np.float32)[None] / found.scale
    seen = network(224)(levels - np.float32(found.mean)).numpy()[0]
    assert np.argmax(arrays["_fc.weight"] @ seen + arrays["_fc.bias"]) == label


def test_a_damaged_or_a_hostile_file_is_refused_by_its_digest(tmp_path, monkeypatch):
    file = tmp_path / efficientnet_lite0._FILE
    file.parent.mkdir(parents=True)
    installed = SimpleNamespace(locate_file=tmp_path.joinpath)
    monkeypatch.setattr(efficientnet_lite0, "distribution", lambda name: installed)
    with pytest.raises(WeightsError, match=r"not installed\. Install the extra 'pretrained'"):
        efficientnet_lite0._content()
    file.write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(WeightsError, match=r"57934424\.pth is damaged, or another version's"):
        efficientnet_lite0._content()
