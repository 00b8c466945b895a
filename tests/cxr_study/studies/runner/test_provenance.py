import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cxr_study.studies.plan.data_file import StudyData
from cxr_study.studies.plan.selection import Selection
from cxr_study.studies.runner import provenance
from surgical_aggregation import __version__


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder from which a copy of the module runs, and git in it."""
    (tmp_path / "studies").mkdir()
    module = tmp_path / "studies/provenance.py"
    shutil.copy(provenance.__file__, module)
    monkeypatch.setattr(provenance, "__file__", str(module))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    def git(*command):
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(
            ["git", "-C", tmp_path, *who, *command], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    return SimpleNamespace(git=git, module=module)


def test_code_is_the_version_with_the_commit_of_a_checkout_of_its_own(checkout, monkeypatch):
    assert provenance.code() == __version__
    checkout.git("init")
    checkout.git("commit", "--allow-empty", "-m", "another project")
    assert provenance.code() == __version__
    checkout.git("add", ".")
    checkout.git("commit", "-m", "a")
    checkout.git("tag", "-a", "v7", "-m", "v7")
    commit = checkout.git("rev-parse", "--short", "HEAD")
    (checkout.module.parent / "new.txt").touch()  # git does not track it
    assert provenance.code() == f"{__version__} ({commit})"
    checkout.module.write_text("changed")
    assert provenance.code() == f"{__version__} ({commit}+)"
    monkeypatch.setenv("PATH", "")  # without git
    assert provenance.code() == __version__


@pytest.mark.parametrize(
    ("gpus", "wanted"),
    [
        ([], "CPU"),
        ([{"device_name": "H100"}, {"device_name": "H100"}], "H100"),
        ([{"device_name": "H100"}, {}], "H100, GPU"),
    ],
)
def test_gpus_are_named_each_kind_once_or_else_the_cpu(monkeypatch, gpus, wanted):
    details = SimpleNamespace(get_device_details=lambda gpu: gpu)
    config = SimpleNamespace(list_physical_devices=lambda kind: gpus, experimental=details)
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(config=config))
    assert provenance.device() == wanted


def test_a_report_of_another_origin_is_told(tmp_path):
    def told(study="/a/mine.yaml", selection=None):
        data = StudyData.model_construct(path=Path("/b/data.yaml"))
        return provenance.origin(Path(study), data, selection or Selection())

    assert told() == "study /a/mine.yaml, data /b/data.yaml, all of it"
    assert provenance.another(told(), tmp_path) is None
    provenance.write_origin(told(), tmp_path)
    assert provenance.another(told(), tmp_path) is None
    assert provenance.another(told("/c/mine.yaml"), tmp_path) == told()
    assert provenance.another(told(selection=Selection(quick=True)), tmp_path) == told()
