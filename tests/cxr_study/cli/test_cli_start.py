"""Help, version and refusals wait for nothing that takes long to import."""

import json
import signal
import subprocess
import sys

import pytest

from tiny_job import JOBS

SLOW = (
    "PIL", "filelock", "jinja2", "joblib", "keras", "matplotlib", "numpy", "nvflare", "pandas",
    "platformdirs", "psutil", "pydicom", "scipy", "sklearn", "statsmodels",
    "tensorboard", "tensorflow", "threadpoolctl", "yaml",
)  # fmt: skip
"""Packages that are imported where they are used, inside commands."""

REFUSED = {
    (): """
        run --nope
        run jobs/surgical
        run jobs/surgical --phantom --set nope=3
        run jobs/surgical --phantom --set server_optimizer=nope
        run jobs/surgical --phantom --preset papers
        run jobs/surgical --phantom --preset paper
        run jobs/surgical --phantom --out .
        run jobs/none --phantom
        continue nowhere
        report nowhere
        model init
        model remove-classes best.npz Hernia --out .
        baseline centralized --phantom
        baseline individual --phantom --preset papers
        baseline individual --phantom --out .
        baseline individual --phantom --set nope=3
        data site nhi nowhere new.yaml
        data site nih nowhere new.yaml
        data partition nih.yaml --out .
        data prepare nih.yaml --size 1
        data audit --out new
        study run clients
        data classes a.yaml b/a.yaml
        deploy submit jobs/surgical --kit lead --out new --set nope=3
        deploy submit jobs/surgical --kit lead --out .
        deploy job surgicl --out new
        deploy job surgical --out new --code nope
        deploy kit site nowhere
        deploy kit server nowhere --storage new
        deploy poc run jobs/surgical --phantom --set nope=3
    """,
    ("jinja2",): """
        run surgical --phantom --set nope=3
        deploy job surgical --out new --set nope=3
    """,
    ("yaml",): """
        run jobs/surgical --site-files nowhere
        data split nih.yaml
        study run clinets --phantom
        study run clients --data phantm
        study run clients --phantom --scenarios nope
    """,
}
"""Packages of `SLOW` that they may import nevertheless -> commands that are refused."""

COMMANDS = {line.strip(): of for of, text in REFUSED.items() for line in text.strip().split("\n")}

PROGRAM = """
import json, sys

slow = set(json.loads(sys.argv[1]))
found_at = {}

def tell(step, refused=None):
    found_at[step] = refused, sorted(slow & sys.modules.keys())
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
print(json.dumps(found_at))
"""

DROPPED = """
import os, signal, sys, time

class Finder:
    def find_spec(self, name, *_):
        if name == "cxr_study.cli.main":
            InCallback()
            time.sleep(9)

class InCallback:
    def __del__(self):
        os.kill(os.getpid(), int(sys.argv[1]))
        time.sleep(0.1)

signal.signal(signal.SIGINT, signal.default_int_handler)
from cxr_study.cli import start
sys.meta_path.insert(0, Finder())
start()
"""
"""A signal that arrives amid an import, where Python drops what its handler raises."""


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_amid_an_import_ends_it(sent):
    call = [sys.executable, "-c", DROPPED, str(int(sent))]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout + done.stderr) == (128 + sent, "")


def test_neither_help_nor_version_nor_a_refusal_imports_anything_slow(tmp_path):
    # What may be imported is asked for last, so that the others are not excused by it.
    (tmp_path / "jobs").symlink_to(JOBS)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(SLOW), json.dumps(list(COMMANDS))],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found_at = json.loads(done.stdout)  # step -> whether it was refused, and what it first imports
    shown = [step for step, (refused, _) in found_at.items() if not refused]
    assert len(shown) > 30 and {"import", "--version", "deploy poc run --help"} <= {*shown}
    assert [command for command in COMMANDS if not found_at[command][0]] == []
    slow = {step: set(found) - {*COMMANDS.get(step, ())} for step, (_, found) in found_at.items()}
    assert {step: names for step, names in slow.items() if names} == {}
