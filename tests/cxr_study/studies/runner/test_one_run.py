"""As a process; real runs are in tests/simulator and tests/poc."""

import os
import subprocess

from cxr_study.studies.runner import run_study


def test_why_it_failed_is_one_line_and_exit_code_1(tmp_path):
    read, write = os.pipe()  # it ends when its standard input does
    try:
        done = subprocess.run(
            [*run_study.COMMAND, tmp_path], stdin=read, capture_output=True, text=True
        )
    finally:
        os.close(read)
        os.close(write)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("failed: ") and str(tmp_path / "run.json") in done.stdout
