import os
import sys
import textwrap
from pathlib import Path

import pytest

from cxr_study.deployment import poc_command
from cxr_study.deployment.poc_project import PocError


@pytest.fixture
def flare(tmp_path, monkeypatch):
    """Put a program in FLARE's place."""

    def put(program):
        script = tmp_path / "flare.py"
        script.write_text("import os, sys, time\n" + textwrap.dedent(program))
        python = tmp_path / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')
        python.chmod(0o755)
        monkeypatch.setattr(poc_command.sys, "executable", str(python))

    return put


def test_flare_works_in_the_folder_with_a_home_of_its_own(flare, tmp_path):
    flare("""
        from pathlib import Path
        told = [*sys.argv[1:], os.getcwd(), os.environ["HOME"], os.environ["TMPDIR"]]
        Path("told").write_text(" ".join(told))
    """)
    root = tmp_path / "poc"
    root.mkdir()
    poc_command.prepare(root, root / "project.yml")
    command = f"-m nvflare.cli poc prepare -i {root}/project.yml"
    assert (root / "told").read_text() == f"{command} {root} {root}/home {root}/tmp"
    assert (root / "home").is_dir() and (root / "tmp").is_dir()


def test_what_flare_says_of_a_failure_is_told(flare, tmp_path):
    flare("sys.exit('no kits here')")
    with pytest.raises(PocError, match="nvflare poc stop failed: no kits here"):
        poc_command.stop(tmp_path)


def test_flare_is_not_waited_for_for_ever(flare, tmp_path, monkeypatch):
    flare("time.sleep(60)")
    with pytest.raises(PocError, match="nvflare poc stop does not end in 0 s"):
        poc_command._run(tmp_path, "stop", timeout=0.3)


def test_processes_find_this_folder_alone_and_this_users_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("NVFLARE_HOME", "/elsewhere")
    monkeypatch.setenv("MINE", "1")
    monkeypatch.setenv("SURGAGG_CACHE", "cache")
    found = poc_command.environment(tmp_path)
    assert "NVFLARE_HOME" not in found and found["MINE"] == "1"
    assert found["NVFLARE_POC_WORKSPACE"] == f"{tmp_path}/system"
    assert found["SURGAGG_CACHE"] == str(Path("cache").absolute())
    assert found["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)
