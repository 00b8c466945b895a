"""An installed copy: one version, pinned dependencies, a command, a whole wheel."""

import importlib.metadata
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from shutil import copy, copytree

import pytest
import typer
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from typer.testing import CliRunner

from cxr_study.cli import main as cli
from product import product
from surgical_aggregation import FLARE, __version__

ROOT = Path(__file__).parents[1]
PROJECT = "surgical-aggregation"
PACKAGES = sorted({path.parts[:2] for path in product(ROOT)})
GROUP = typer.main.get_command(cli.app).commands
COMMANDS = sorted(name for name, command in GROUP.items() if not command.hidden)
LINES = (ROOT / "constraints.txt").read_text().splitlines()
PINS = [Requirement(line) for line in LINES if not line.startswith("#")]


def test_package_metadata_citation_and_command_have_the_same_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert importlib.metadata.version(PROJECT) == __version__
    assert citation["version"] == __version__
    released = re.search(r"^## (\S+) - (\S+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)
    assert released.groups() == (__version__, str(citation["date-released"]))
    command = Path(sysconfig.get_path("scripts")) / "surgagg"
    printed = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == __version__


def test_the_flare_that_is_checked_for_is_the_one_that_is_asked_for():
    asked = map(Requirement, importlib.metadata.requires(PROJECT))
    found = {str(each.specifier) for each in asked if each.name == "nvflare"}
    assert found == {str(Requirement(f"x{FLARE}").specifier)}


def test_every_pin_is_one_exact_version_from_a_package_index():
    for pin in PINS:
        assert pin.url is None
        assert [exact.operator for exact in pin.specifier] == ["=="], pin


def test_workflows_pin_every_action_by_commit_and_name_its_version():
    workflows = (ROOT / ".github/workflows").glob("*.yml")
    used = re.findall(r"uses: (.*)", "\n".join(file.read_text() for file in workflows))
    assert used
    assert [line for line in used if not re.fullmatch(r"\S+@[0-9a-f]{40} # v\d\S*", line)] == []


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12"])
def test_every_dependency_is_pinned_within_its_range(python):
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    pins = [pin for pin in PINS if pin.marker is None or pin.marker.evaluate(environment)]
    pinned = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins}
    for requirement in map(Requirement, importlib.metadata.requires(PROJECT)):
        if requirement.name == PROJECT:  # an extra that has others
            continue
        version = pinned[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{requirement}, pinned to {version}"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_shows_an_example(command):
    done = CliRunner().invoke(cli.app, [*command.split(), "--help"])
    assert done.exit_code == 0, done.output
    assert f"Example:  surgagg {command}" in done.output


def test_wheel_holds_every_file_of_the_packages_and_no_tests(tmp_path):
    source = tmp_path / "source"  # a copy: building leaves files beside the sources
    for folder in ("components", "custom", "tests"):
        copytree(ROOT / folder, source / folder)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        copy(ROOT / name, source)
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", source]
    subprocess.run([*build, "--wheel-dir", tmp_path], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    paths = [path for part in PACKAGES for path in ROOT.joinpath(*part).rglob("*")]
    files = [path.relative_to(ROOT) for path in paths if path.is_file() and path.suffix != ".pyc"]
    files = {path.as_posix().partition("/")[2] for path in files}
    assert {".csv", ".css", ".j2", ".npz", ".py", ".yaml"} <= {Path(name).suffix for name in files}
    assert {f"{package}/py.typed" for _, package in PACKAGES} <= names
    assert names == files
