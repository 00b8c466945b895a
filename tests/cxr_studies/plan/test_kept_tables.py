import gzip

import numpy as np
import pandas as pd
import pytest

from cxr_studies.plan.kept_tables import keep, read

NAN = np.nan
TABLE = pd.DataFrame(
    {
        "image": ["a.png", "NA", "b, c.png", '"d".png'],
        "patient": ["007", "NA", "1e3", "nan"],
        "view": ["PA", "", "AP", "frontal"],
        "sex": ["F", "", "M", ""],
        "age": [0.1 + 0.2, NAN, 50.0, 1 / 3],
        "Mass": [1.0, 0.0, NAN, 0.0],
        "Edema": [NAN, NAN, NAN, NAN],
    }
)


def test_a_table_is_read_as_it_was_kept_bit_for_bit(tmp_path):
    for table in (TABLE, TABLE.assign(image=list("1234"), patient="007", view="", sex="")):
        again = read(keep(table, tmp_path), tmp_path)
        pd.testing.assert_frame_equal(again, table, check_exact=True)
        for name in ("age", "Mass", "Edema"):
            assert again[name].to_numpy().tobytes() == table[name].to_numpy().tobytes()


@pytest.mark.parametrize(
    "other",
    [
        TABLE.assign(age=[0.3, NAN, 50.0, 1 / 3]),
        TABLE.assign(Mass=[1.0, 0.0, 0.0, 0.0]),
        TABLE.assign(patient=["7", "NA", "1e3", "nan"]),
        TABLE.rename(columns={"Mass": "Nodule"}),
        TABLE[::-1],
    ],
)
def test_its_key_is_of_its_content_alone(other, tmp_path):
    moved = pd.DataFrame({name: TABLE[name].tolist() for name in TABLE}, index=[9, 8, 7, 6])
    key = keep(TABLE, tmp_path)
    assert keep(moved, tmp_path) == key != keep(other, tmp_path)
    pd.testing.assert_frame_equal(read(key, tmp_path), TABLE)


def test_the_same_content_is_the_same_file_that_is_written_once_and_whole(tmp_path, monkeypatch):
    with monkeypatch.context() as interrupted, pytest.raises(ZeroDivisionError):
        interrupted.setattr("pathlib.Path.replace", lambda path, target: 1 / 0)
        keep(TABLE, tmp_path / "1")
    for now in (1, 2):
        monkeypatch.setattr("time.time", lambda now=now: now * 1e9)
        key = keep(TABLE, tmp_path / str(now))
        pd.testing.assert_frame_equal(read(key, tmp_path / str(now)), TABLE)
    name = f"{key}.csv.gz"
    assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    monkeypatch.setattr(gzip, "compress", None)
    assert keep(TABLE, tmp_path / "1") == key
