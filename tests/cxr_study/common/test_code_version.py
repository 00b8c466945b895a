import shutil
import subprocess
from types import SimpleNamespace

import pytest

from cxr_study.common import code_version
from surgical_aggregation import __version__


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder from which a copy of the module runs, and git in it."""
    (tmp_path / "common").mkdir()
    module = tmp_path / "common/code_version.py"
    shutil.copy(code_version.__file__, module)
    monkeypatch.setattr(code_version, "__file__", str(module))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    def git(*command):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.check_output(["git", "-C", tmp_path, *who, *command], text=True).strip()

    return SimpleNamespace(git=git, module=module)


def test_code_is_the_version_with_the_commit_of_a_checkout_of_its_own(checkout, monkeypatch):
    assert code_version.code() == __version__
    checkout.git("init")
    checkout.git("commit", "--allow-empty", "-m", "another project")
    assert code_version.code() == __version__
    checkout.git("add", ".")
    checkout.git("commit", "-m", "a")
    checkout.git("tag", "-a", "v7", "-m", "v7")
    commit = checkout.git("rev-parse", "--short", "HEAD")
    (checkout.module.parent / "new.txt").touch()  # git does not track it
    assert code_version.code() == f"{__version__} ({commit})"
    checkout.module.write_text("changed")
    assert code_version.code() == f"{__version__} ({commit}+)"
    monkeypatch.setenv("PATH", "")  # without git
    assert code_version.code() == __version__
