import pytest

from cxr_study.cli import run


@pytest.fixture
def started(monkeypatch):
    """Runs that were asked for: [(study, title, force), ...]."""
    calls = []
    monkeypatch.setattr(run, "run_and_report", lambda *a: calls.append(a))
    return calls
