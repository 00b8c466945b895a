from pathlib import Path

from cxr_study.common.cache import cache_dir


def test_the_environment_decides(monkeypatch):
    monkeypatch.setenv("SURGAGG_CACHE", "/somewhere")
    assert cache_dir() == Path("/somewhere")


def test_else_it_is_the_users_cache(monkeypatch):
    monkeypatch.delenv("SURGAGG_CACHE", raising=False)
    assert cache_dir().name == "surgical-aggregation"
