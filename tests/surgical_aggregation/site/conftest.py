"""Tests of a site see all that it logs."""

import pytest


@pytest.fixture(autouse=True)
def _everything_logged(caplog):
    caplog.set_level("INFO")
