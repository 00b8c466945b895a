import os

import pytest

from cxr_study.data.images.image_journal import OK, Known
from cxr_study.data.images.image_sources import file_stamp, look_at, undecoded


@pytest.fixture
def png(tmp_path):
    path = tmp_path / "0/a.png"
    path.parent.mkdir()
    path.write_bytes(b"123")
    os.utime(path, ns=(5, 7))
    return str(path)


def test_a_file_is_stamped_with_length_and_time_of_change(png):
    assert file_stamp(png) == (3, 7)


def test_a_file_is_named_relative_to_the_folder(png, tmp_path):
    (inside, outside), _ = look_at(tmp_path, ["a", "a"], [png, png[1:]])
    assert (inside.image, inside.path, inside.file) == ("a", png, "0/a.png")
    assert outside.file == png[1:]


def test_a_file_that_is_not_there_has_no_stamp(png, tmp_path):
    sources, failures = look_at(tmp_path, ["a", "b", "c"], [png, "", f"{png}x"])
    assert [source.stamp for source in sources] == [(3, 7), None, None]
    assert failures == {}


def test_a_file_that_cannot_be_looked_at_is_told(png, tmp_path):
    _, failures = look_at(tmp_path, ["a"], [f"{png}/b.png"])
    assert failures == {"0/a.png/b.png": "Not a directory"}


def test_new_and_changed_files_are_undecoded_and_each_once(png, tmp_path):
    sources, _ = look_at(tmp_path, ["a", "again", "none"], [png, png, ""])
    same, longer, later = (
        {"0/a.png": Known(stamp, OK, "", "h", 0)} for stamp in [(3, 7), (2, 7), (3, 6)]
    )
    assert undecoded(same, sources) == []
    for known in ({}, longer, later):
        assert [source.file for source in undecoded(known, sources)] == ["0/a.png"]
