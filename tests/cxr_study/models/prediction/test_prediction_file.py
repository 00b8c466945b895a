import numpy as np
import pandas as pd
import pytest

from cxr_study.models.prediction.prediction_file import check, opened

PARTS = [
    pd.DataFrame({"image": names, "Mass": np.float32([0.1, 1 / 3])[: len(names)], "flags": flags})
    for names, flags in ((["a", "b, c"], ["", "view LL"]), (["d"], [""]))
]


def test_parts_become_one_table_that_reads_back_bit_for_bit(tmp_path):
    path = tmp_path / "new/p.csv"
    check(path)
    with opened(path) as append:
        for part in PARTS:
            append(part)
        assert not path.exists()
    read = pd.read_csv(path, dtype={"Mass": np.float32}, keep_default_na=False)
    pd.testing.assert_frame_equal(read, pd.concat(PARTS, ignore_index=True), check_dtype=False)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_an_interrupted_table_leaves_the_old_file(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), opened(path) as append:
        append(PARTS[0])
        raise KeyboardInterrupt
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"need a file \.csv; got .*p\.parquet"):
        check(tmp_path / "p.parquet")
