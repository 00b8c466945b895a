import dataclasses
import gzip
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import study_runs
from cxr_studies.plan import run_folder as folder
from cxr_studies.plan.row import Row


def test_the_process_of_a_run_reads_what_decides_it(tmp_path):
    run = study_runs.run(num_rounds=7)
    what = {**run.what, "row": {"method": "vanilla", "strategy": "fedavg"}, "given": {"seed": 4}}
    folder.write_spec(dataclasses.replace(run, what=what), tmp_path)
    found = folder.read_spec(tmp_path)
    assert (found.row, found.seed) == (Row("vanilla", "fedavg"), 4)
    assert (found.what, found.where) == (what, run.where)
    assert json.loads((tmp_path / "run.json").read_text())["name"] == run.name


def test_the_key_of_a_run_is_of_its_content_not_of_its_paths_or_scenario():
    run = study_runs.run()
    for change in ({"method": "vanilla"}, {"seed": 1}, {"num_rounds": 9}):
        assert study_runs.run(**change).key != run.key
    moved = dataclasses.replace(run, scenario="four sites", where={"sites": []})
    assert moved.key == run.key == folder.key_of(dict(reversed(run.what.items())))
    one, other = (folder.key_of({"classes": c}) for c in (["Ödem", "Mass"], ("Mass", "Ödem")))
    assert one != other
    assert folder.key_of({"seed": 0}) == "de7d7744ccd7722e"  # and never changes


def test_a_result_is_read_as_it_was_written_and_stays_where_another_cannot_be_written(tmp_path):
    assert folder.read_result(tmp_path) is None and folder.read_result(tmp_path / "nowhere") is None
    result = dataclasses.replace(
        study_runs.RESULT, losses=(None, 0.1 + 0.2), aurocs=(None, 0.75),
        column_similarity=({}, {"Ödem": -0.5}), tests={"nih": "0123"},
        classes={"global": ["Ödem", "Mass"]}, digests={"global": "4567"},
    )  # fmt: skip
    folder.write_result(result, tmp_path)
    with pytest.raises(ValueError, match="JSON"):
        folder.write_result(dataclasses.replace(result, losses=(float("nan"),)), tmp_path)
    assert folder.read_result(tmp_path) == result
    text = (tmp_path / folder.RESULT_FILE).read_text(encoding="utf-8")
    earlier = json.loads(text)
    del earlier["aurocs"], earlier["images"], earlier["sources"], earlier["machine"]
    (tmp_path / "earlier").mkdir()
    (tmp_path / "earlier" / folder.RESULT_FILE).write_text(json.dumps(earlier), encoding="utf-8")
    bare = dataclasses.replace(result, aurocs=(), images=0, sources="", machine="")
    assert folder.read_result(tmp_path / "earlier") == bare
    assert "Ödem" in text  # for people to read


NAN = np.nan
TABLE = pd.DataFrame([
    ("a.png", "007", "PA", "F", 0.1 + 0.2, 1.0, NAN), ("NA", "NA", "", "", NAN, 0.0, NAN),
    ("b, c.png", "1e3", "AP", "M", 50.0, NAN, NAN),
    ('"d".png', "nan", "frontal", "", 1 / 3, 0.0, NAN),
], columns=["image", "patient", "view", "sex", "age", "Mass", "Edema"])  # fmt: skip


def test_a_table_is_read_as_it_was_kept_bit_for_bit(tmp_path):
    for table in (TABLE, TABLE.assign(image=list("1234"), patient="007", view="", sex="")):
        again = folder.read_table(folder.keep_table(table, tmp_path), tmp_path)
        pd.testing.assert_frame_equal(again, table, check_exact=True)
        for name in ("age", "Mass", "Edema"):
            assert again[name].to_numpy().tobytes() == table[name].to_numpy().tobytes()


@pytest.mark.parametrize("other", [
    TABLE.assign(age=[0.3, NAN, 50.0, 1 / 3]), TABLE.assign(Mass=[1.0, 0.0, 0.0, 0.0]),
    TABLE.assign(patient=["7", "NA", "1e3", "nan"]), TABLE.rename(columns={"Mass": "Nodule"}),
    TABLE[::-1],
])  # fmt: skip
def test_its_key_is_of_its_content_alone(other, tmp_path):
    moved = pd.DataFrame({name: TABLE[name].tolist() for name in TABLE}, index=[9, 8, 7, 6])
    key = folder.keep_table(TABLE, tmp_path)
    assert folder.keep_table(moved, tmp_path) == key != folder.keep_table(other, tmp_path)
    pd.testing.assert_frame_equal(folder.read_table(key, tmp_path), TABLE)


def test_the_same_content_is_the_same_file_that_is_written_once_and_whole(tmp_path, monkeypatch):
    with monkeypatch.context() as interrupted, pytest.raises(ZeroDivisionError):
        interrupted.setattr("pathlib.Path.replace", lambda path, target: 1 / 0)
        folder.keep_table(TABLE, tmp_path / "1")
    for now in (1, 2):
        monkeypatch.setattr("time.time", lambda now=now: now * 1e9)
        key = folder.keep_table(TABLE, tmp_path / str(now))
        pd.testing.assert_frame_equal(folder.read_table(key, tmp_path / str(now)), TABLE)
    name = f"{key}.csv.gz"
    assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    monkeypatch.setattr(gzip, "compress", None)
    assert folder.keep_table(TABLE, tmp_path / "1") == key


def test_arrays_of_models_and_test_sets_are_read_as_written_from_small_files(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {
        (model, test): rng.random((images, 3), np.float32)
        for model in ("nih-1", "nih-2")
        for test, images in (("nih", 7), ("mimic", 3))
    }
    arrays["alike", "nih"] = np.full((10_000, 3), 0.25, np.float32)
    folder.write_arrays(arrays, tmp_path / "arrays.npz")
    for pair, array in arrays.items():
        found = folder.read_array(tmp_path / "arrays.npz", *pair)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, array)
    assert (tmp_path / "arrays.npz").stat().st_size < 10_000


def test_every_model_of_a_run_is_given_on_every_test_set_with_its_table(study):
    tests = {name: study_runs.table({"Mass": [1.0, 0.0]}, view=name) for name in ("nih", "mimic")}
    own = {"nih": {"Mass": [0.5, 0.25]}, "chexpert": {"Edema": [0.125, 0], "Mass": [1, 0.75]}}
    run = study.add(own, tests)
    result = study.gathered().results[run.key]
    found = list(folder.predictions(study.folder, run.key, result))
    assert [(each.test, each.model) for each in found] == [(t, m) for t in tests for m in own]
    for each in found:
        pd.testing.assert_frame_equal(each.table, tests[each.test])
        pd.testing.assert_frame_equal(each.scores, pd.DataFrame(own[each.model], dtype="float32"))


@given(st.integers(1, 2 * folder.FEATURES_OF) | st.integers(1, 300_000))
def test_rows_of_features_are_spread_evenly_from_the_first_image_to_the_last(images):
    rows = folder.featured_rows(images)
    assert rows.dtype == np.int64
    assert len(rows) == min(images, folder.FEATURES_OF)
    assert (rows[0], rows[-1]) == (0, images - 1)
    gaps = np.diff(rows)
    assert len(gaps) == 0 or 1 <= gaps.min() <= gaps.max() <= gaps.min() + 1
