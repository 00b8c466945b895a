import json

import pytest

from cxr_study.data.census.shareable_census import CensusError
from cxr_study.data.census.shared_file import from_json, read_shared


def test_what_is_written_is_read_again(shared, tmp_path):
    path = tmp_path / "here.json"
    path.write_text(json.dumps(shared.to_json()))
    again = read_shared(path)
    assert again.to_json() == shared.to_json()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda v: v.update(format=2), "needs a shared census, with 'format': 1"),
        (lambda v: v.pop("site"), "needs site; the file has no such key"),
        (lambda v: v.update(images=-1), "images needs a whole number, 0 or more; got -1"),
        (lambda v: v["sex"].pop("F"), "sex needs the cells F, M, unknown"),
        (lambda v: v["classes"].update(Edema=3), "classes.Edema needs 'uncertain' and 'read'"),
        (lambda v: v["intensity"].pop(), "intensity needs 32 numbers; got 31"),
        (lambda v: v["features"]["mean"].pop(), r"features need shapes \(64,\)"),
    ],
)
def test_another_form_is_refused_by_name(shared, change, message):
    values = json.loads(json.dumps(shared.to_json()))
    change(values)
    with pytest.raises(CensusError, match=message):
        from_json(values)


def test_a_file_that_is_no_json_is_named(tmp_path):
    path = tmp_path / "here.json"
    path.write_text("{")
    with pytest.raises(CensusError, match=r"here\.json cannot be read as a shared census"):
        read_shared(path)
