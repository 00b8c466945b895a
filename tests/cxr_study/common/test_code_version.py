import shutil
import subprocess

from cxr_study.common import code_version
from surgical_aggregation import __version__


def test_code_is_the_version_with_the_commit_of_a_checkout_of_its_own(tmp_path, monkeypatch):
    (tmp_path / "common").mkdir()
    module = tmp_path / "common/code_version.py"  # from which a copy of the module runs
    shutil.copy(code_version.__file__, module)
    monkeypatch.setattr(code_version, "__file__", str(module))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    def git(*command):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        return subprocess.check_output(["git", "-C", tmp_path, *who, *command], text=True).strip()

    assert code_version.code() == __version__
    git("init")
    git("commit", "--allow-empty", "-m", "another project")
    assert code_version.code() == __version__
    git("add", ".")
    git("commit", "-m", "a")
    git("tag", "-a", "v7", "-m", "v7")
    commit = git("rev-parse", "--short", "HEAD")
    (module.parent / "new.txt").touch()  # git does not track it
    assert code_version.code() == f"{__version__} ({commit})"
    module.write_text("changed")
    assert code_version.code() == f"{__version__} ({commit}+)"
    monkeypatch.setenv("PATH", "")  # without git
    assert code_version.code() == __version__
