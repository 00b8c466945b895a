"""What is made and removed; systems that run are in tests/poc."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from cxr_deployment import poc_system, processes
from cxr_deployment.flare_session import SessionError
from cxr_deployment.poc_system import MARK, PocError, PocProject, PocSystem

POC = Path(__file__).parents[2] / "poc"
PROJECT = POC / "project.yml"


@pytest.fixture
def system(tmp_path):
    return PocSystem(tmp_path / "poc")


@pytest.fixture
def prepared(system):
    """A system of two sites, as far as its mark says."""
    system.folder.mkdir()
    PocProject.read(PROJECT).changed(port=1, sites=["a", "b"]).write(system.folder / MARK)
    return system


def test_its_processes_find_its_folder_alone_and_this_users_cache(prepared, monkeypatch):
    root = prepared.root
    assert prepared.project.sites == ("a", "b") and prepared.lead.name == prepared.project.lead
    names = {role: path.name for role, path in prepared.workspaces.items()}
    assert names == {"server": "server", "a": "a", "b": "b"}
    monkeypatch.chdir(root.parent)
    relative = PocSystem(Path(root.name))  # from wherever it is named
    assert relative.root == root and relative.kit("a") == prepared.kit("a")
    for name, value in {"NVFLARE_HOME": "/else", "MINE": "1", "SURGAGG_CACHE": "cache"}.items():
        monkeypatch.setenv(name, value)
    found = prepared.environment
    assert "NVFLARE_HOME" not in found and found["MINE"] == "1"
    assert found["HOME"] == f"{root}/home" and found["TMPDIR"] == f"{root}/tmp"
    assert found["NVFLARE_POC_WORKSPACE"] == f"{root}/system"
    assert found["SURGAGG_CACHE"] == str(Path("cache").absolute())
    assert found["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("step", ["write", "provision", "localise_site", "localise_server"])
def test_whatever_fails_in_its_making_nothing_is_left(system, monkeypatch, step, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(PocProject, "provision", lambda *_: None)
    monkeypatch.setattr(poc_system, "localise_site", lambda *_, **__: None)
    monkeypatch.setattr(poc_system if step.startswith("localise") else PocProject, step, fail)
    with pytest.raises(error):
        system.prepare(PROJECT)
    assert not system.folder.exists()


def test_its_keys_are_for_its_own_account_alone(system, monkeypatch):
    monkeypatch.setattr(PocProject, "provision", lambda *_: None)
    for party in ("localise_site", "localise_server"):
        monkeypatch.setattr(poc_system, party, lambda *_, **__: None)
    system.prepare(PROJECT)
    assert system.folder.stat().st_mode & 0o777 == 0o700


def test_a_port_that_somebody_has_is_refused_unless_it_is_its_own(system, taken, monkeypatch):
    system.check(PROJECT, processes.free_port())
    system.folder.mkdir()
    for own, runs, free in ((taken, [], False), (taken, [1], True), (1, [1], False)):
        PocProject.read(PROJECT).changed(port=own).write(system.folder / MARK)
        monkeypatch.setattr(processes, "find_processes", lambda _, runs=runs: runs)
        with nullcontext() if free else pytest.raises(processes.PortError):
            system.check(PROJECT, taken)


@pytest.mark.parametrize(("running", "error", "did"), [
    ((processes.JOB, processes.SERVER), None, ["job", "left", "ended"]),
    ((), None, ["ended"]),
    ((processes.JOB,), None, ["ended"]),
    ((processes.SERVER,), None, ["ended"]),
    ((processes.JOB, processes.SERVER), SessionError("gone"), ["ended"]),
    ((processes.JOB, processes.SERVER), KeyboardInterrupt(), ["ended"]),
])  # fmt: skip
def test_it_is_stopped_always_and_a_running_job_before(prepared, monkeypatch, running, error, did):
    done = []

    @contextmanager
    def session(kit, *_):
        if error:
            raise error
        yield SimpleNamespace(running=lambda: ["job"], abort=lambda job, _: done.append(job))
        done.append("left")

    monkeypatch.setattr(poc_system, "FlareSession", session)
    monkeypatch.setattr(processes, "find_processes", lambda _: [])
    monkeypatch.setattr(processes, "any_runs", lambda _, *words: words in running)
    monkeypatch.setattr(processes, "terminate", lambda _: done.append("ended"))
    interrupted = isinstance(error, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt) if interrupted else nullcontext():
        prepared.stop()
    assert done == did


def test_one_whose_making_was_killed_is_removed(system):
    code = (
        "import os, sys; from pathlib import Path\n"
        "from cxr_deployment.poc_system import PocProject, PocSystem\n"
        "PocProject.provision = lambda *_: os.kill(os.getpid(), 9)\n"
        "PocSystem(Path(sys.argv[1])).prepare(Path(sys.argv[2]))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(system.folder), str(PROJECT)])
    assert done.returncode == -signal.SIGKILL and system.folder.is_dir()
    (system.folder / MARK).write_text("name: [")  # half-written
    system.clean()
    assert not system.folder.exists()


def test_a_folder_with_a_project_file_of_flares_is_not_removed(system):
    shutil.copytree(POC, system.folder)
    with pytest.raises(PocError, match="holds no POC"):
        system.clean()
    assert (system.folder / "project.yml").is_file()


@pytest.fixture
def project():
    return PocProject.read(PROJECT)


def test_another_file_is_refused(project, tmp_path):
    path = tmp_path / "p.yml"
    with pytest.raises(PocError, match=r"p\.yml does not exist; a POC needs FLARE's project"):
        PocProject.read(path)
    for text in ("", "name: x", "name: [", "name: x\nparticipants: []"):
        path.write_text(text)
        with pytest.raises(PocError, match="is no project file of FLARE"):
            PocProject.read(path)
    people = [p for p in project.content["participants"] if p["type"] != "client"]
    PocProject({**project.content, "participants": people}).write(path)
    with pytest.raises(PocError, match="names no sites"):
        PocProject.read(path)


def test_changed_the_server_is_here_at_one_port_and_known_sites_keep_their_org(project, tmp_path):
    project.server.update(default_host="fl.hospital.org", admin_port=8003)
    assert project.changed(port=1).sites == project.sites
    changed = project.changed(port=1234, sites=["chexpert", "new-one"])
    assert changed.port == 1234 and "admin_port" not in changed.server
    assert changed.server["default_host"] == "localhost"
    clients = [p for p in changed.content["participants"] if p["type"] == "client"]
    assert [(site["name"], site["org"]) for site in clients] == [
        ("chexpert", "hospital_chexpert"), ("new-one", "new_one"),
    ]  # fmt: skip
    changed.write(tmp_path / "p.yml")
    assert PocProject.read(tmp_path / "p.yml") == changed
    assert project.sites == ("nih", "chexpert") and project.server["admin_port"] == 8003


def test_a_project_with_relays_is_no_pocs(project):
    project.content["participants"].append({"name": "relay-1", "type": "relay", "org": "a"})
    with pytest.raises(PocError, match=r"no relays; the project has relay-1\. Take them"):
        project.changed(port=1)


def test_keys_for_encryption_are_made_before_the_signatures(project):
    paths = [b["path"] for b in project.changed(port=1, encrypted=True).content["builders"]]
    assert [path.rsplit(".")[-1] for path in paths[-2:]] == ["HEBuilder", "SignatureBuilder"]
    assert paths[:-2] + paths[-1:] == [b["path"] for b in project.content["builders"]]


def test_the_studys_project_makes_a_kit_for_everybody_and_says_nothing(project, tmp_path, capfd):
    assert project.sites == ("nih", "chexpert")
    assert "lead" in project.lead and "admin" in project.project_admin
    project.provision(tmp_path)
    assert capfd.readouterr() == ("", "")
    kits = {path.name for path in (tmp_path / project.name / "prod_00").iterdir()}
    assert kits == {person["name"] for person in project.content["participants"]}
    assert project == PocProject.read(PROJECT)


@pytest.mark.parametrize(("change", "message"), [
    ({"api_version": 1}, "API version expected"),
    ({"builders": [{"path": "nvflare.nothing.Here", "args": {}}]}, "nvflare.nothing"),
    ({"builders": [{"path": "nvflare.lighter.impl.cert.CertBuilder", "args": {}}]}, "."),
])  # fmt: skip
def test_flares_output_of_a_failed_provisioning_is_reported(project, tmp_path, change, message):
    with pytest.raises(PocError, match=rf"FLARE ma\w+ no startup kits.*{message}"):
        PocProject({**project.content, **change}).provision(tmp_path)
