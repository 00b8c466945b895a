"""The runbook's commands are commands."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from cxr_study import cli

RUNBOOK = (Path(__file__).parents[2] / "poc" / "README.md").read_text().replace("\\\n", "")
COMMANDS = sorted(set(re.findall(r"(?:^|`)(surgagg [^`#\n]+)", RUNBOOK, re.M)))


def test_the_search_finds_them():
    assert len(COMMANDS) > 12


@pytest.mark.parametrize("line", COMMANDS)
def test_it_exists_and_has_the_options(line):
    command = typer.main.get_command(cli.app)
    words = shlex.split(line)[1:]
    while words and hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known
