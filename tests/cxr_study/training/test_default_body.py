from pathlib import Path

from cxr_study.training import default_body
from cxr_study.training.default_body import ChestXrayInitialBody


def test_the_configured_file_is_the_one(monkeypatch):
    monkeypatch.setattr(default_body, "embedded_initial_body", lambda: Path("embedded.npz"))
    assert ChestXrayInitialBody("own.npz").path() == Path("own.npz")


def test_without_a_file_it_is_the_embedded_studys(monkeypatch):
    monkeypatch.setattr(default_body, "embedded_initial_body", lambda: Path("embedded.npz"))
    for nothing in (None, ""):  # FLARE gives "" for a variable that is not set
        assert ChestXrayInitialBody(nothing).path() == Path("embedded.npz")
