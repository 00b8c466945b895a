from io import StringIO

import pytest
from rich.console import Console

from cxr_study.common.steps import Steps


@pytest.fixture
def console():
    return Console(file=StringIO(), width=100)


def test_a_step_is_told_with_its_seconds_when_it_is_over(console):
    with Steps(console).step("start", "two sites") as said:
        assert console.file.getvalue() == ""
        said.append("port 1")
    (line,) = console.file.getvalue().splitlines()
    assert line.startswith("start     two sites, port 1 ") and line.endswith(" 0.0 s")


def test_a_step_that_fails_is_not_told(console):
    with pytest.raises(OSError), Steps(console).step("start"):
        raise OSError
    assert console.file.getvalue() == ""
