import numpy as np
import pandas as pd
import pytest

from cxr_study.data.images.labelled_images import ImageRows, Images, pool


def images(*values, side=2):
    return np.repeat(np.array(values, np.uint8), side * side).reshape(-1, side, side)


def test_every_pooled_image_keeps_its_labels():
    first = Images(pd.DataFrame({"A": [1, 2]}), images(10, 10, 12), np.array([2, 0]))
    second = Images(pd.DataFrame({"A": [np.nan]}), images(20, 21), np.array([1]))
    pooled = pool([first, second])
    assert pooled.pixels[pooled.rows][:, 0, 0].tolist() == [12, 10, 21]
    wanted = [[1, np.nan], [2, np.nan], [np.nan, np.nan]]
    np.testing.assert_array_equal(pooled.labels(["A", "B"]), wanted)


def test_rows_continue_where_the_array_before_ends_and_are_copied_when_asked_for(tmp_path):
    images(3, 4).tofile(tmp_path / "pixels")
    mapped = np.memmap(tmp_path / "pixels", np.uint8, shape=(2, 2, 2))
    rows = ImageRows([images(1, 2), images(), mapped, images(5), images()])
    assert rows.shape == (5, 2, 2) and rows.dtype == np.uint8 and len(rows) == 5
    mapped[1] = 9
    given = rows[np.array([4, 0, 3, 3, 2])]
    np.testing.assert_array_equal(given, images(5, 1, 9, 9, 3))
    given[:] = 7
    assert mapped[1, 0, 0] == 9
    with pytest.raises(ValueError, match=r"one side.*\(2, 2\), \(4, 4\)"):
        ImageRows([images(1), images(1, side=4)])
