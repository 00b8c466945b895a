import json
import os
import subprocess
import sys
import time
from pathlib import Path
from zipfile import ZipFile

import pytest

from cxr_deployment.local_workspaces import JobFiles, JobFilesError, find_job_files, workspaces

OLD, NEW = "0043d777-243b-4872-a3ae-97753961216e", "f3a2a0de-9b0c-4d5e-8d55-0a6d8c0f4a11"
DAY = 24 * 60 * 60
OTHERS = {
    "startup/fed_client.json", "local/resources.json", "log.txt", "transfer/old.zip",
    "checkpoints/initial.npz", "checkpoints/shared/initial.npz", "local_notes/readme.txt",
}  # fmt: skip


@pytest.fixture
def kit(tmp_path):
    """A site's kit, with files of two jobs, and of none."""
    of_jobs = {
        f"checkpoints/{OLD}/last.npz": 100, f"{OLD}/log.txt": 90, f"local_notes/{OLD}.txt": 95,
        f"checkpoints/{NEW}/last.npz": 1,
    }  # fmt: skip
    for path, days in {**of_jobs, **dict.fromkeys(OTHERS, 300)}.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"1234")
        os.utime(file, (time.time() - days * DAY,) * 2)
    (tmp_path / "local/resources.json").write_text('{"components": []}')
    os.link(tmp_path / f"checkpoints/{OLD}/last.npz", tmp_path / f"{OLD}/best.npz")
    return tmp_path


def test_all_of_a_job_is_found_the_oldest_first_and_its_removal_leaves_all_else(kit, monkeypatch):
    old, new = find_job_files(kit)
    assert (old.job, new.job) == (OLD, NEW)
    found = {path.relative_to(kit).as_posix() for path in old.paths}
    assert found == {OLD, f"checkpoints/{OLD}", f"local_notes/{OLD}.txt"}
    assert old.size == 12  # two names of one file
    assert round(old.age_days) == 90 and round(new.age_days) == 1  # of the newest file
    assert not old.running
    (kit / OLD / "removed.tmp").symlink_to("nowhere")  # as if a running job removed it now
    with monkeypatch.context() as patch:
        patch.setattr(Path, "is_file", lambda path: not path.is_dir())
        assert JobFiles(OLD, old.paths, running=False).size == 12
    assert find_job_files(kit, older_than=2) == [old] and find_job_files(kit, older_than=91) == []
    old.remove()
    assert [one.job for one in find_job_files(kit)] == [NEW]
    rest = {path.relative_to(kit).as_posix() for path in kit.rglob("*") if path.is_file()}
    assert rest == {f"checkpoints/{NEW}/last.npz", *OTHERS}


@pytest.fixture
def stored(kit):
    """The same of a server, whose store has the older job in a state, unchanged for days."""

    def stored(status, days, name, text):
        manager = {"id": "job_manager", "args": {"uri_root": str(kit / "jobs")}}
        (kit / "local/resources.json").write_text(json.dumps({"components": [manager]}))
        (kit / f"jobs/{OLD}").mkdir(parents=True)
        meta = {"name": "surgical", "status": status, "submitter_name": "lead"}
        (kit / f"jobs/{OLD}/meta").write_text(json.dumps(meta))
        with ZipFile(kit / f"jobs/{OLD}/data", "w") as job:
            job.writestr(f"job/app_server/config/config_fed_server.{name}", text)
        for file in (kit / f"jobs/{OLD}").iterdir():
            os.utime(file, (time.time() - days * DAY,) * 2)
        return find_job_files(kit, [OLD])[0]

    return stored


@pytest.mark.parametrize(("status", "days", "needed"), [
    ("FINISHED:COMPLETED", 0, ""),
    ("SUBMITTED", 9, "waiting"),
    ("RUNNING", 0, "running"),
    ("RUNNING", 9, ""),  # the server was killed under it
])  # fmt: skip
def test_what_a_server_does_not_need_is_removed(kit, stored, status, days, needed):
    old = stored(status, days, "json", f'{{"continues": "{NEW}"}}')
    assert (old.meta["name"], old.continues, old.in_use) == ("surgical", NEW, needed)
    assert old.size > 12 and kit / f"jobs/{OLD}" in old.paths
    old.remove()
    assert not (kit / f"jobs/{OLD}").exists() and [one.job for one in find_job_files(kit)] == [NEW]


@pytest.mark.parametrize("module", ["nvflare.private.fed.app.client.worker_process", "surgagg"])
def test_a_job_that_has_a_process_of_flares_is_running(kit, module):
    """One that only names the job, as this command itself does, is none."""
    words = [sys.executable, "-c", "import sys; sys.stdin.read()", module, "-n", NEW]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as process:
        try:
            running = [one.running for one in find_job_files(kit)]
        finally:
            process.stdin.close()
    assert running == [False, module.startswith("nvflare.")]


def test_no_kit_and_an_unknown_job_are_refused(kit):
    with pytest.raises(JobFilesError, match=r"startup kit is needed, with startup/; got .*local"):
        find_job_files(kit / "local")
    with pytest.raises(JobFilesError, match="has no files of job other"):
        find_job_files(kit, ["other", NEW])


def test_workspaces_are_those_of_the_same_provisioning_that_were_started_and_can_be_read(
    tmp_path, monkeypatch
):
    for name in ("nih", "not started", "server", "another's", "another provisioning"):
        startup = tmp_path / name / "startup"
        startup.mkdir(parents=True)
        (startup / f"fed_{'server' if name == 'server' else 'client'}.json").touch()
        (startup / "rootCA.pem").write_text("" if name == "another provisioning" else "ours")
        if name != "not started":
            (tmp_path / name / "log.txt").touch()
    is_file = Path.is_file

    def forbidden(path):
        if "another's" in path.parts:
            raise PermissionError(path)
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", forbidden)  # root may read all
    assert workspaces(tmp_path / "nih") == {n: tmp_path / n for n in ("nih", "server")}
    assert workspaces(tmp_path / "no kit") == {}
