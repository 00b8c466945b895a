from pathlib import Path

import pytest

from cxr_study.deployment.poc_project import PocError, PocProject

PROJECT = Path(__file__).parents[3] / "poc/project.yml"


@pytest.fixture
def project():
    return PocProject.read(PROJECT)


class TestRead:
    def test_the_studys_own_project_is_one(self, project):
        assert project.sites == ("nih", "chexpert")
        assert "lead" in project.lead and "admin" in project.project_admin

    def test_a_file_that_is_not_there_is_asked_for(self, tmp_path):
        with pytest.raises(PocError, match=r"no\.yml does not exist; a POC needs FLARE's project"):
            PocProject.read(tmp_path / "no.yml")

    @pytest.mark.parametrize("text", ["", "name: x", "name: [", "name: x\nparticipants: []"])
    def test_another_file_is_refused(self, tmp_path, text):
        (tmp_path / "project.yml").write_text(text)
        with pytest.raises(PocError, match="is no project file of FLARE"):
            PocProject.read(tmp_path / "project.yml")

    def test_a_project_without_sites_is_refused(self, project, tmp_path):
        people = [p for p in project.content["participants"] if p["type"] != "client"]
        PocProject({**project.content, "participants": people}).write(tmp_path / "p.yml")
        with pytest.raises(PocError, match="names no sites"):
            PocProject.read(tmp_path / "p.yml")


class TestChanged:
    def test_the_server_is_on_this_machine_at_one_port(self, project):
        project.server.update(default_host="fl.hospital.org", admin_port=8003)
        changed = project.changed(port=1234)
        assert changed.port == 1234 and "admin_port" not in changed.server
        assert changed.server["default_host"] == "localhost"
        assert changed.sites == project.sites

    def test_a_site_that_the_project_knows_keeps_its_organisation(self, project):
        changed = project.changed(port=1, sites=["chexpert", "new-one"])
        known, new = (p for p in changed.content["participants"] if p["type"] == "client")
        assert (known["name"], known["org"]) == ("chexpert", "hospital_chexpert")
        assert (new["name"], new["org"]) == ("new-one", "new_one")

    def test_the_project_itself_stays_as_it_is(self, project):
        project.changed(port=1, sites=["other"], encrypted=True)
        assert project == PocProject.read(PROJECT)

    def test_keys_for_encryption_are_made_before_the_signatures(self, project):
        paths = [b["path"] for b in project.changed(port=1, encrypted=True).content["builders"]]
        assert [path.rsplit(".")[-1] for path in paths[-2:]] == ["HEBuilder", "SignatureBuilder"]
        assert paths[:-2] + paths[-1:] == [b["path"] for b in project.content["builders"]]

    def test_it_is_read_back_as_it_was_written(self, project, tmp_path):
        changed = project.changed(port=1, sites=["a"])
        changed.write(tmp_path / "p.yml")
        assert PocProject.read(tmp_path / "p.yml") == changed


class TestProvision:
    def test_makes_a_kit_for_everybody_and_says_nothing(self, project, tmp_path, capfd):
        before = PocProject.read(PROJECT)
        project.provision(tmp_path)
        assert capfd.readouterr() == ("", "")
        kits = {path.name for path in (tmp_path / project.name / "prod_00").iterdir()}
        assert kits == {person["name"] for person in project.content["participants"]}
        assert project == before

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"api_version": 1}, "API version expected"),
            ({"builders": [{"path": "nvflare.nothing.Here", "args": {}}]}, "nvflare.nothing"),
            ({"builders": [{"path": "nvflare.lighter.impl.cert.CertBuilder", "args": {}}]}, "."),
        ],
    )
    def test_what_flare_says_of_a_failure_is_told(self, project, tmp_path, change, said):
        with pytest.raises(PocError, match=rf"FLARE ma\w+ no startup kits.*{said}"):
            PocProject({**project.content, **change}).provision(tmp_path)
