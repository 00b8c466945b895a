from pathlib import Path

import pytest

from cxr_study.common.files import atomic_path, atomic_write, cache_dir


def test_the_environment_decides_or_else_it_is_the_users_cache(monkeypatch):
    monkeypatch.setenv("SURGAGG_CACHE", "/somewhere")
    assert cache_dir() == Path("/somewhere")
    monkeypatch.delenv("SURGAGG_CACHE")
    assert cache_dir().name == "surgical-aggregation"


def test_leaves_the_new_text_and_nothing_else_or_the_old_one(tmp_path):
    path = tmp_path / "page.html"
    for text in ("old", "new é\n"):
        atomic_write(path, text)
    assert path.read_bytes() == "new é\n".encode() and list(tmp_path.iterdir()) == [path]
    with pytest.raises(UnicodeEncodeError):
        atomic_write(path, "newer" * 9999 + "\ud800")
    assert path.read_bytes() == "new é\n".encode()


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    folder = tmp_path / "new/site"
    with pytest.raises(OSError, match="full"), atomic_path(folder) as half:
        half.mkdir()
        raise OSError("full")
    assert not list((tmp_path / "new").iterdir())
    with atomic_path(folder) as half:
        half.mkdir()
        (half / "a").touch()
    assert [path.name for path in tmp_path.rglob("*")] == ["new", "site", "a"]
