"""What works where this software is installed without its extras, as on a server."""

import os
import subprocess
import sys

import pytest

from base_install import base, hidden, hook
from cxr_study.jobs.components import ALLOWED

SERVER = """
import importlib
for path in {paths}:
    module, _, name = path.rpartition(".")
    getattr(importlib.import_module(module), name)
from surgical_aggregation.extras import offered_body
print(offered_body("drawings").name)
"""
ENCRYPTED = "surgical_aggregation.encryption.encrypted_aggregator.EncryptedSurgicalAggregator"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run a program, or a command, in the base install."""
    folders = [hook(tmp_path_factory.mktemp("base") / "hook"), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}

    def run(*arguments):
        command = [sys.executable, *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    return run


def test_it_is_small():
    assert {"nvflare", "numpy", "scipy"} < base() and len(base()) < 60
    others = {"tensorflow", "keras", "pandas", "PIL", "matplotlib", "typer", "rich", "tensorboard"}
    assert others <= {*hidden()}


def test_the_servers_components_are_found_and_the_body_of_the_phantom(run):
    server = [path for path in ALLOWED if ".server." in path and path != ENCRYPTED]
    assert len(server) > 15
    done = run("-c", SERVER.format(paths=server))
    assert done.stdout.split() == ["pretrained_body.npz"], done.stderr


@pytest.mark.parametrize(("program", "message"), [
    ("from cxr_study.cli import start; start()", "surgagg: the package typer is not installed. "
     "It comes with an extra: pip install 'surgical-aggregation[cxr]'"),
    ("from surgical_aggregation.site.training import tensorflow_setup as t; t.import_quietly()",
     "the package keras is not installed. It comes with an extra: pip install "
     "'surgical-aggregation[keras]'"),
], ids=["command", "site"])  # fmt: skip
def test_an_import_that_misses_its_extra_says_which(run, program, message):
    done = run("-c", program)
    assert done.returncode and done.stderr.strip().endswith(message)
