import numpy as np

from cxr_study.data.images.labelled_images import LabelledImages, pool


def test_every_image_keeps_its_labels():
    pixels = [np.full((3, 2, 2), 10, np.uint8), np.full((2, 2, 2), 20, np.uint8)]
    pixels[0][2], pixels[1][1] = 12, 21
    pooled = pool(
        [
            LabelledImages(pixels[0], np.array([2, 0]), np.float32([[1], [2]])),
            LabelledImages(pixels[1], np.array([1]), np.float32([[np.nan]])),
        ]
    )
    assert pooled.pixels[pooled.rows][:, 0, 0].tolist() == [12, 10, 21]
    np.testing.assert_array_equal(pooled.labels, np.float32([[1], [2], [np.nan]]))
