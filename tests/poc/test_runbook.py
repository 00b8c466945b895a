"""The runbook's commands are commands, and take the arguments that it gives them."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
import typer
from nvflare import cli as flare
from nvflare.apis.fl_constant import AdminCommandNames
from typer.testing import CliRunner

from cxr_study import cli
from provisioned import Provisioned

ROOT = Path(__file__).parents[2]
RUNBOOK = (ROOT / "poc" / "README.md").read_text().replace("\\\n", "")
FENCED = "\n".join(re.findall(r"^```bash\n(.*?)^```", RUNBOOK, re.M | re.S))
INLINE = re.findall(r"`([^`\n]+)`", RUNBOOK)


def words(line):
    """A command's words without its comment; what is to be filled in, as one letter."""
    return shlex.split(re.sub(r"<[^>]*>", "X", line), comments=True)


LINES = [line for line in map(words, FENCED.splitlines()) if line]
MENTIONED = [words(text) for text in INLINE if text.startswith(("surgagg ", "nvflare "))]


def commands(program):
    """Arguments of each of the runbook's commands of a program."""
    found = {tuple(line) for line in LINES + MENTIONED if line[0] == program}
    return [pytest.param(list(line[1:]), id=shlex.join(line)) for line in sorted(found)]


def test_the_search_finds_them():
    assert len(commands("surgagg")) > 12 and len(commands("nvflare")) > 8
    assert {line[0] for line in LINES} == {"surgagg", "nvflare", "chmod"}


@pytest.mark.parametrize("arguments", commands("surgagg"))
def test_surgagg_takes_it(arguments):
    command, rest = typer.main.get_command(cli.app), list(arguments)
    while rest and hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    if rest or ["surgagg", *arguments] in LINES:  # else it is only spoken of
        command.make_context("surgagg", rest)


@pytest.mark.parametrize("arguments", commands("nvflare"))
def test_flare_takes_it(arguments, monkeypatch):
    monkeypatch.setattr("sys.argv", ["nvflare", *arguments])
    flare.parse_args("nvflare")


def test_files_of_the_project_that_it_names_are_there():
    named = {word for line in LINES for word in line if word.startswith(("jobs/", "poc/"))}
    named |= set(re.findall(r"python (\S+\.py)", RUNBOOK))
    assert len(named) > 1
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_the_console_has_the_commands():
    row = re.search(r"^\| console, (.*)$", RUNBOOK, re.M)[1]
    known = set(vars(AdminCommandNames).values())
    said = {command.split()[0] for command in re.findall(r"`([^`]+)`", row)} - {"bash"}
    assert len(said) > 4 and said <= known


@pytest.fixture(scope="module")
def kits(tmp_path_factory):
    """The folder that holds the kits that FLARE makes of the project file."""
    return Provisioned(tmp_path_factory.mktemp("network"), ["nih", "chexpert"]).server.parent


class TestKits:
    def test_have_the_scripts(self, kits):
        named = set(re.findall(r"\w+\.sh\b|(?<=startup/)\w+\.crt", RUNBOOK))
        assert len(named) > 3
        assert named <= {path.name for path in kits.glob("*/startup/*")}

    def test_are_localised_and_a_job_is_made_beside_them(self, kits, monkeypatch):
        shutil.copy(ROOT / "poc" / "server" / "permitted.yaml", kits)
        monkeypatch.chdir(kits)
        for line in LINES:
            if line[:2] in (["surgagg", "kit"], ["surgagg", "job"]):
                done = CliRunner().invoke(cli.app, line[1:], catch_exceptions=False)
                assert done.exit_code == 0, done.output
        localised = {path.parts[0] for path in Path().glob("*/local/privacy.json")}
        assert localised == {"server", "nih"}
        assert Path("my-job", "meta.json").is_file()
