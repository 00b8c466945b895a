"""Fixture: a download with other rows, read."""

from functools import partial

import pytest

from downloads import read_rewritten


@pytest.fixture
def read(tmp_path):
    return partial(read_rewritten, tmp_path)
