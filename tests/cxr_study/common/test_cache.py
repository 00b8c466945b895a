from pathlib import Path

from cxr_study.common.cache import cache_dir


def test_the_environment_decides_or_else_it_is_the_users_cache(monkeypatch):
    monkeypatch.setenv("SURGAGG_CACHE", "/somewhere")
    assert cache_dir() == Path("/somewhere")
    monkeypatch.delenv("SURGAGG_CACHE")
    assert cache_dir().name == "surgical-aggregation"
