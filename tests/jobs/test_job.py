"""jobs/job.py, as a FLARE user calls it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

JOB = Path(__file__).parents[2] / "jobs" / "job.py"


def call(*arguments, cwd):
    command = [sys.executable, "-W", "ignore::UserWarning", JOB, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


def test_it_exports_what_is_asked_for(tmp_path):
    done = call(
        "--export", "--export-dir", "out", "--method", "vanilla", "--strategy", "fedbn+",
        "--sites", "a,b,c", "--set", "num_rounds=3", "--set", "c:epochs=2",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    job = tmp_path / "out" / "vanilla"
    assert json.loads((job / "meta.json").read_text())["deploy_map"] == {
        "app_server": ["server"],
        "app_client": ["a", "b"],
        "app_c": ["c"],
    }
    server = json.loads((job / "app_server/config/config_fed_server.json").read_text())
    assert server["num_rounds"] == 3
    client = json.loads((job / "app_c/config/config_fed_client.json").read_text())
    assert (client["strategy"], client["epochs"]) == ("fedbn+", 2)


@pytest.mark.parametrize(("options", "message"), [
    (["--export", "--set", "num_round=3"], "no setting 'num_round'; nearest known: num_rounds"),
    (["--env", "prod"], "--env prod needs --startup-kit"),
])  # fmt: skip
def test_a_mistake_is_a_line_and_makes_nothing(tmp_path, options, message):
    done = call(*options, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr.splitlines()[-1]
    assert not list(tmp_path.iterdir())
