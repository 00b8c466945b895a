import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from cxr_study.data.images.decoding import resize_square
from cxr_study.models import pixel_graph

SIDE = 24


def assert_same(pixels, side):
    expected = np.asarray(resize_square(Image.fromarray(pixels), side))
    found = np.asarray(pixel_graph._resized(pixels[None].astype(np.float32), side))
    np.testing.assert_array_equal(found[0], expected)


@settings(max_examples=40, deadline=None)
@given(
    height=st.integers(1, 400), width=st.integers(1, 400), seed=st.integers(0, 9),
    kind=st.sampled_from(["noise", "black and white", "white"]),
)  # fmt: skip
def test_resizing_is_the_projects_bit_for_bit(height, width, seed, kind):
    rng = np.random.default_rng(seed)
    pixels = {
        "noise": rng.integers(0, 256, (height, width)),
        "black and white": 255 * rng.integers(0, 2, (height, width)),
        "white": np.full((height, width), 255),
    }[kind].astype(np.uint8)
    assert_same(pixels, SIDE)


@pytest.mark.parametrize(("shape", "side"), [
    ((1024, 1024), 224), ((2544, 3056), 224), ((8193, 40), 64), ((40, 16000), 64), ((32000, 9), 64),
])  # fmt: skip
def test_large_radiographs_too(shape, side):
    pixels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    assert_same(pixels, side)
