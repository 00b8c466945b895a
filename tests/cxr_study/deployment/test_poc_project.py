from pathlib import Path

import pytest

from cxr_study.deployment.poc_project import PocError, PocProject

PROJECT = Path(__file__).parents[3] / "poc/project.yml"


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


def test_changed_the_server_is_on_this_machine_at_one_port_and_known_sites_keep_their_organisation(
    project, tmp_path
):
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


def test_the_studys_own_project_makes_a_kit_for_everybody_and_says_nothing(
    project, tmp_path, capfd
):
    assert project.sites == ("nih", "chexpert")
    assert "lead" in project.lead and "admin" in project.project_admin
    project.provision(tmp_path)
    assert capfd.readouterr() == ("", "")
    kits = {path.name for path in (tmp_path / project.name / "prod_00").iterdir()}
    assert kits == {person["name"] for person in project.content["participants"]}
    assert project == PocProject.read(PROJECT)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"api_version": 1}, "API version expected"),
        ({"builders": [{"path": "nvflare.nothing.Here", "args": {}}]}, "nvflare.nothing"),
        ({"builders": [{"path": "nvflare.lighter.impl.cert.CertBuilder", "args": {}}]}, "."),
    ],
)
def test_what_flare_says_of_a_failed_provisioning_is_told(project, tmp_path, change, said):
    with pytest.raises(PocError, match=rf"FLARE ma\w+ no startup kits.*{said}"):
        PocProject({**project.content, **change}).provision(tmp_path)
