import pytest

from cxr_study.common.files import replace


def test_leaves_the_new_text_and_nothing_else(tmp_path):
    for text in ("old", "new é\n"):
        replace(tmp_path / "page.html", text)
    assert (tmp_path / "page.html").read_bytes() == "new é\n".encode()
    assert len(list(tmp_path.iterdir())) == 1


def test_one_that_fails_leaves_the_old_text(tmp_path):
    path = tmp_path / "page.html"
    replace(path, "old")
    with pytest.raises(UnicodeEncodeError):
        replace(path, "new" * 9999 + "\ud800")
    assert path.read_text() == "old"
