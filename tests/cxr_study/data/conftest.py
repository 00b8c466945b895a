"""Fixture: a csv of some text or bytes."""

import pytest


@pytest.fixture
def write(tmp_path):
    """Write a csv, text in an encoding; its path."""

    def write_csv(content, name="table.csv", encoding="utf-8"):
        content = content if isinstance(content, bytes) else content.encode(encoding)
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return write_csv
