"""The command line starts at once: help and refusals wait for nothing that takes long to import.

In a process of its own, for this one has everything loaded already.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

JOBS = Path(__file__).parents[3] / "jobs"

SLOW = (
    "PIL", "filelock", "jinja2", "joblib", "keras", "matplotlib", "numpy", "nvflare", "pandas",
    "platformdirs", "psutil", "pydicom", "pyhocon", "scipy", "sklearn", "statsmodels",
    "tensorboard", "tensorflow", "threadpoolctl", "yaml",
)  # fmt: skip
"""Packages that are imported where they are used, inside commands."""

REFUSED = {
    "run --nope": (),
    "run jobs/surgical --set nope=3": (),
    "run jobs/surgical --set num_rounds": (),
    "run jobs/surgical --set seed=fast": (),
    "run jobs/surgical --set send=nope": (),
    "run jobs/surgical --set tracking=nope": (),
    "run jobs/surgical --set server_optimizer=nope": (),
    "run jobs/surgical --set head_weighting=nope": (),
    "run jobs/surgical --set nhi:seed=1": (),
    "run jobs/surgical --preset papers": (),
    "run jobs/surgical --preset paper": (),
    "run jobs/surgical --sites nih": (),
    "run jobs/surgical --out .": (),
    "run jobs/surgical --site-files nowhere": ("yaml",),
    "run jobs/none": (),
    "demo --job jobs/surgical --set nope=3": (),
    "real nowhere": (),
    "init": (),
    "continue nowhere": (),
    "retire best.npz Hernia --out .": (),
    "decrypt best.npz --context client_context.tenseal --out .": (),
    "report nowhere": (),
    "submit jobs/surgical --kit lead --out new --set nope=3": (),
    "submit jobs/surgical --kit lead --out .": (),
    "job surgicl --out new": (),
    "job surgical --out new --preset papers": (),
    "job surgical --out new --strategy fedprox": (),
    "job surgical --out new --code nope": (),
    "job surgical --out new --set nope=3": ("jinja2",),
    "train centralized": (),
    "train individual --preset papers": (),
    "train individual --set nope=3": ("jinja2",),
    "train individual --strategy fedbn": ("jinja2",),
    "train individual --out .": ("jinja2",),
    "compare --seeds 3": (),
    "data site nhi nowhere new.yaml": (),
    "data site nih nowhere new.yaml": (),
    "data split nih.yaml --share 2": (),
    "data split nih.yaml": ("yaml",),
    "data sites nih.yaml --out .": (),
    "data prepare nih.yaml --size 1": (),
    "data audit --out new": (),
    "classes a.yaml b/a.yaml": (),
    "kit site nowhere": (),
    "kit server nowhere --storage new": (),
    "poc run jobs/surgical --set nope=3": (),
    "poc run jobs/surgical --out .": (),
    "poc run jobs/surgical --port 70000": (),
    "study run clinets": ("yaml",),
    "study run clients --data phantm": ("yaml",),
    "study run clients --settings nope": ("yaml",),
    "study run clients --methods nope": ("yaml",),
}
"""Command that is refused -> packages of `SLOW` that it may import nevertheless."""

PROGRAM = """
import json, sys

slow = set(json.loads(sys.argv[1]))
told = {}

def tell(step, refused=None):
    told[step] = refused, sorted(slow & sys.modules.keys())
    slow.difference_update(sys.modules)

from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typer.main import get_command
from cxr_study.cli.main import app

command = get_command(app)
tell("import")

def call(*words):
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            command(words, prog_name="surgagg")
    except SystemExit as end:
        tell(" ".join(words), end.code == 2)
    except (ValueError, OSError):
        tell(" ".join(words), True)

def commands(group, *path):
    yield path
    for name, command in getattr(group, "commands", {}).items():
        yield from commands(command, *path, name)

call("--version")
for path in commands(command):
    call(*path, "--help")
for words in json.loads(sys.argv[2]):
    call(*words.split())
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Step -> whether it was refused, and what it was the first to import of `SLOW`."""
    # What may be imported is asked for last, so that the others are not excused by it.
    words = sorted(REFUSED, key=lambda command: (len(REFUSED[command]), REFUSED[command]))
    home = tmp_path_factory.mktemp("start")
    (home / "jobs").symlink_to(JOBS)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(SLOW), json.dumps(words)],
        cwd=home,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_help_and_version_import_nothing_slow(told):
    shown = {step: slow for step, (refused, slow) in told.items() if not refused}
    assert len(shown) > 30 and {"import", "--version", "--help", "poc run --help"} <= set(shown)
    assert {step: slow for step, slow in shown.items() if slow} == {}


@pytest.mark.parametrize("command", REFUSED)
def test_a_refusal_imports_nothing_slow(told, command):
    refused, slow = told[command]
    assert refused
    assert set(slow) <= set(REFUSED[command])
