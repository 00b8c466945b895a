import numpy as np
import pytest

from cxr_study.data.images.labelled_images import ImageRows, LabelledImages, pool


def images(*values, side=2):
    return np.repeat(np.array(values, np.uint8), side * side).reshape(-1, side, side)


def test_every_pooled_image_keeps_its_labels():
    first = LabelledImages(images(10, 10, 12), np.array([2, 0]), np.float32([[1], [2]]))
    second = LabelledImages(images(20, 21), np.array([1]), np.float32([[np.nan]]))
    pooled = pool([first, second])
    assert pooled.pixels[pooled.rows][:, 0, 0].tolist() == [12, 10, 21]
    np.testing.assert_array_equal(pooled.labels, np.float32([[1], [2], [np.nan]]))


def test_rows_continue_where_the_array_before_ends():
    rows = ImageRows([images(1, 2), images(), images(3), images(4, 5), images()])
    assert rows.shape == (5, 2, 2) and rows.dtype == np.uint8 and len(rows) == 5
    np.testing.assert_array_equal(rows[np.array([4, 0, 2, 2, 1])], images(5, 1, 3, 3, 2))


def test_nothing_is_copied_before_it_is_asked_for(tmp_path):
    images(1, 2).tofile(tmp_path / "pixels")
    mapped = np.memmap(tmp_path / "pixels", np.uint8, shape=(2, 2, 2))
    rows = ImageRows([images(0), mapped])
    mapped[1] = 9
    np.testing.assert_array_equal(rows[np.array([2])], images(9))
    given = rows[np.array([1])]
    given[:] = 7
    assert mapped[0, 0, 0] == 1


def test_images_of_two_sizes_are_refused():
    with pytest.raises(ValueError, match=r"one side.*\(2, 2\), \(4, 4\)"):
        ImageRows([images(1), images(1, side=4)])
