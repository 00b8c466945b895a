"""Fixtures: the summary of a made-up run, and pages without figures."""

import pytest

from cxr_study.reports.run import run_figures
from made_up_summary import degenerate, summary  # noqa: F401


@pytest.fixture
def no_figures(monkeypatch):
    """Drawing takes most of a page's time; the figures have tests of their own."""
    for name in ("validation_bce", "validation_auroc", "class_aurocs"):
        monkeypatch.setattr(run_figures, name, lambda *_: "")
