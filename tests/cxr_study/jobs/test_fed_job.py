"""What FLARE's job export makes of a job folder, read by FLARE's own loader."""

import json
from pathlib import Path

import pytest
from nvflare.fuel.utils.config_factory import ConfigFactory
from nvflare.fuel.utils.dict_utils import extract_first_level_primitive
from nvflare.fuel.utils.json_scanner import JsonScanner
from nvflare.fuel.utils.wfconf import resolve_var_refs

from cxr_study.jobs import job_folder
from cxr_study.jobs.fed_job import StudyJob, read
from cxr_study.jobs.job_templates import METHODS

JOBS = Path(__file__).parents[3] / "jobs"
ENVIRONMENT = {"CXR_SITES": "/data/sites", "CXR_INITIAL_BODY": "/data/initial.npz"}


@pytest.fixture
def environment(monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def exported(job, folder, name="exported"):
    """Export a job folder as FLARE does; the new folder."""
    configuration = read(job)
    fed_job = StudyJob(name, configuration)
    fed_job.add_sites(configuration)
    fed_job.export_job(str(folder))
    return folder / name


def meta(job):
    return json.loads((job / "meta.json").read_text())


def app_of(job, site):
    (app,) = [app for app, sites in meta(job)["deploy_map"].items() if site in sites]
    return job / app


def loaded(app, half, site="server"):
    """A configuration as FLARE loads it at a site, without the knobs on its top."""
    config = ConfigFactory.load_config(f"config_fed_{half}.json", [str(app / "config")]).to_dict()
    knobs = extract_first_level_primitive(config)
    resolve_var_refs(JsonScanner(config), {**knobs, "SITE_NAME": site})
    for entry in config["task_data_filters"] + config["task_result_filters"]:
        entry["tasks"] = sorted(entry["tasks"])
        for filter_ in entry["filters"]:
            filter_.setdefault("args", {})
    for entry in config["components"]:
        entry.setdefault("args", {})
    return {key: value for key, value in config.items() if isinstance(value, list | dict)}


@pytest.mark.parametrize("method", METHODS)
class TestExport:
    def test_every_part_is_as_in_the_folder(self, method, tmp_path, environment):
        job = exported(JOBS / method, tmp_path)
        for site in ("nih", "chexpert"):
            ours, theirs = (loaded(app_of(j, site), "client", site) for j in (JOBS / method, job))
            assert ours["components"][0]["args"]["site"] == site
            assert ours["components"][0]["args"]["sites"] == ENVIRONMENT["CXR_SITES"]
            assert theirs == ours
        ours, theirs = (loaded(app_of(j, "server"), "server") for j in (JOBS / method, job))
        assert ours["components"][0]["args"] == {"file": ENVIRONMENT["CXR_INITIAL_BODY"]}
        assert theirs == ours

    def test_its_meta_is_the_folders_but_for_the_name(self, method, tmp_path):
        assert meta(exported(JOBS / method, tmp_path, method)) == meta(JOBS / method)

    def test_what_only_a_site_can_tell_stays_a_reference(self, method, tmp_path):
        (config,) = exported(JOBS / method, tmp_path).glob("app_client/config/*")
        args = json.loads(config.read_text())["components"][0]["args"]
        assert (args["site"], args["sites"]) == ("{SITE_NAME}", "{$CXR_SITES}")

    def test_it_carries_the_marker_and_no_code(self, method, tmp_path):
        job = exported(JOBS / method, tmp_path)
        carried = {path.relative_to(job).as_posix() for path in job.glob("*/custom/**/*")}
        assert carried == {"app_server/custom/README.txt", "app_client/custom/README.txt"}
        assert (job / "app_client/custom/README.txt").read_text() == (
            JOBS / method / "app_client/custom/README.txt"
        ).read_text()


@pytest.fixture
def apart(tmp_path):
    """A job in which one site of three has knobs of its own."""
    job_folder.copy(
        JOBS / "surgical",
        tmp_path / "apart",
        sites=["nih", "chexpert", "mimic"],
        settings={},
        per_site={"chexpert": {"learning_rate": 2e-5}},
    )
    return tmp_path / "apart"


class TestSitesWithKnobsOfTheirOwn:
    def test_have_an_app_of_their_own(self, apart, tmp_path, environment):
        job = exported(apart, tmp_path)
        assert meta(job)["deploy_map"] == {
            "app_server": ["server"],
            "app_client": ["nih", "mimic"],
            "app_chexpert": ["chexpert"],
        }
        for site in ("nih", "chexpert", "mimic"):
            assert loaded(app_of(job, site), "client", site) == loaded(
                app_of(apart, site), "client", site
            )

    def test_no_app_of_a_site_names_another_or_holds_the_servers_configuration(
        self, apart, tmp_path
    ):
        job = exported(apart, tmp_path)
        for app, others in {"app_chexpert": "nih mimic", "app_client": "chexpert"}.items():
            for file in (job / app).rglob("*.json"):
                assert "server" not in file.name
                assert not [name for name in others.split() if name in file.read_text()]


class TestSharing:
    def test_a_site_that_is_changed_after_an_export_is_on_its_own(self, tmp_path):
        configuration = read(JOBS / "surgical")
        job = StudyJob("changed", configuration)
        job.add_sites(configuration)
        job.export_job(str(tmp_path))
        job.to({"timeout": 5}, "chexpert")
        job.export_job(str(tmp_path))
        folder = tmp_path / "changed"
        assert meta(folder)["deploy_map"]["app_client"] == ["nih"]
        assert "timeout" in (folder / "app_chexpert/config/config_fed_client.json").read_text()
        assert "timeout" not in (folder / "app_client/config/config_fed_client.json").read_text()

    def test_a_job_whose_every_site_is_on_its_own_has_no_shared_app(self, apart, tmp_path):
        job_folder.copy(apart, tmp_path / "alone", sites=["chexpert"], settings={})
        job = exported(tmp_path / "alone", tmp_path)
        assert sorted(meta(job)["deploy_map"]) == ["app_chexpert", "app_server"]
