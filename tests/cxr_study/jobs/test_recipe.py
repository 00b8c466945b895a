"""The recipe's job is the folder's, as FLARE loads both; simulator/ and poc/ run it."""

import json
from pathlib import Path

import pytest
from nvflare.apis.job_def import JobMetaKey
from nvflare.app_common.filters.percentile_privacy import PercentilePrivacy
from nvflare.fuel.utils.config_factory import ConfigFactory
from nvflare.fuel.utils.dict_utils import extract_first_level_primitive
from nvflare.fuel.utils.json_scanner import JsonScanner
from nvflare.fuel.utils.wfconf import resolve_var_refs
from nvflare.recipe import SimEnv, add_experiment_tracking, set_per_site_config, set_recipe_meta

from cxr_study.jobs import job_folder
from cxr_study.jobs.command_line_settings import JobError
from cxr_study.jobs.job_templates import METHODS
from cxr_study.jobs.recipe import SurgicalAggregationRecipe
from tiny_site import TinySite

JOBS = Path(__file__).parents[3] / "jobs"
ENVIRONMENT = {"CXR_SITES": "/data/sites", "CXR_INITIAL_BODY": "/data/initial.npz"}
CLIENT = "config/config_fed_client.json"
RATES = {"chexpert": {"learning_rate": 1e-5}}


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def export(tmp_path):
    """Export a recipe; the exported job."""

    def make(recipe):
        recipe.export(str(tmp_path / "exported"))
        return tmp_path / "exported" / recipe.name

    return make


@pytest.fixture
def folder(tmp_path):
    """A copy of the surgical job's folder."""

    def make(settings=None, sites=("nih", "chexpert"), per_site=None):
        job = tmp_path / "folder"
        job_folder.copy(
            JOBS / "surgical", job, sites=sites, settings=settings or {}, per_site=per_site
        )
        return job

    return make


def meta(job):
    return json.loads((job / "meta.json").read_text())


def app_of(job, party):
    (app,) = [app for app, parties in meta(job)["deploy_map"].items() if party in parties]
    return job / app


def loaded(job, party):
    """A party's configuration as FLARE loads it there, without the settings on its top."""
    half = "server" if party == "server" else "client"
    place = str(app_of(job, party) / "config")
    config = ConfigFactory.load_config(f"config_fed_{half}.json", [place]).to_dict()
    values = extract_first_level_primitive(config)
    resolve_var_refs(JsonScanner(config), {**values, "SITE_NAME": party})
    for entry in config["task_data_filters"] + config["task_result_filters"]:
        entry["tasks"] = sorted(entry["tasks"])
        for filter_ in entry["filters"]:
            filter_.setdefault("args", {})
    for entry in config["components"]:
        entry.setdefault("args", {})
    return {key: value for key, value in config.items() if isinstance(value, list | dict)}


def assert_same(job, other):
    """Two jobs are the same to all who run them, but for the job's name."""
    metas = [meta(job), meta(other)]
    for content in metas:
        del content["name"]
    assert metas[0] == metas[1]
    for party in [*job_folder.sites(other), "server"]:
        assert loaded(job, party) == loaded(other, party)


@pytest.mark.parametrize("method", METHODS)
def test_it_is_that_of_the_methods_folder_with_references_the_marker_and_no_code(method, export):
    job = export(SurgicalAggregationRecipe(method=method))
    assert_same(job, JOBS / method)
    assert meta(job)["name"] == method
    site = loaded(job, "nih")["components"][0]["args"]
    assert (site["site"], site["sites"]) == ("nih", ENVIRONMENT["CXR_SITES"])
    server = loaded(job, "server")["components"][0]["args"]
    assert server == {"file": ENVIRONMENT["CXR_INITIAL_BODY"]}
    args = json.loads((job / "app_client" / CLIENT).read_text())["components"][0]["args"]
    assert (args["site"], args["sites"]) == ("{SITE_NAME}", "{$CXR_SITES}")
    brought, own = (
        {path.relative_to(j): path.read_text() for path in j.glob("*/custom/**/*")}
        for j in (job, JOBS / method)
    )
    assert brought == own


def test_for_sites_with_an_allow_list_it_is_not_marked(export):
    job = export(SurgicalAggregationRecipe(code="installed"))
    assert not list(job.glob("*/custom"))
    assert loaded(job, "nih") == loaded(JOBS / "surgical", "nih")


class TestSettings:
    def test_every_one_reaches_its_place(self, export, folder):
        settings = {
            "strategy": "fedbn", "num_rounds": 3, "min_clients": 3,
            "initial_body": "/data/body.npz", "learning_rate": 2e-4, "server_optimizer": "fedadam",
        }  # fmt: skip
        others = {"site_files": "/data/others", "sites": ["a", "b", "c"], "name": "mine"}
        recipe = SurgicalAggregationRecipe(**others, **settings)
        job = export(recipe)
        assert recipe.name == meta(job)["name"] == "mine" and meta(job)["min_clients"] == 3
        assert_same(job, folder({**settings, "sites": "/data/others"}, ["a", "b", "c"]))

    def test_a_preset_lies_under_them_and_another_site_component_in_place_of_ours(self, export):
        site = TinySite("{SITE_NAME}", "table.json")
        job = export(SurgicalAggregationRecipe(preset="paper", num_rounds=3, site=site))
        train = loaded(job, "server")["workflows"][1]["args"]
        assert (train["num_rounds"], train["patience"]) == (3, 25)
        (site,) = [each for each in loaded(job, "nih")["components"] if each["id"] == "site"]
        assert site["path"] == "tiny_site.TinySite" and job_folder.has_own_site(job)
        settings = job_folder.read_settings(job)  # a report says them: none of our own site's
        assert settings["strategy"] == "fedbn+" and settings["learning_rate"] == 5e-5
        assert not settings.keys() & {"backbone", "image_size", "sites"}
        assert site["args"] == {"site": "nih", "table": "table.json"}


class TestPerSite:
    """A site with settings of its own has an app of its own; the others share one."""

    SITES = ("nih", "chexpert", "mimic")

    @pytest.mark.parametrize("helper", [False, True])
    def test_it_is_the_folder_with_apps_of_their_own(self, export, folder, helper):
        own = {} if helper else {"per_site_config": RATES}
        recipe = SurgicalAggregationRecipe(sites=self.SITES, **own)
        if helper:
            set_per_site_config(recipe, RATES)
            assert recipe.configured_sites() == ["chexpert"]
        job = export(recipe)
        assert_same(job, folder(sites=self.SITES, per_site=RATES))
        for app, others in {"app_chexpert": "nih mimic", "app_client": "chexpert"}.items():
            for file in (job / app).rglob("*.json"):
                assert "server" not in file.name
                assert not [name for name in others.split() if name in file.read_text()]

    def test_where_every_site_has_its_own_there_is_no_shared_app(self, export):
        job = export(
            SurgicalAggregationRecipe(sites=["chexpert"], min_clients=1, per_site_config=RATES)
        )
        assert sorted(meta(job)["deploy_map"]) == ["app_chexpert", "app_server"]

    def test_a_site_that_is_changed_after_an_export_is_on_its_own(self, export, folder):
        recipe = SurgicalAggregationRecipe()
        assert_same(export(recipe), folder())
        recipe.add_client_config({"timeout": 5}, clients=["chexpert"])
        job = export(recipe)
        assert meta(job)["deploy_map"]["app_client"] == ["nih"]
        assert "timeout" in (job / "app_chexpert" / CLIENT).read_text()
        assert "timeout" not in (job / "app_client" / CLIENT).read_text()


class TestHelpers:
    """What FLARE's recipe helpers add is in the job, and nothing of the job is lost."""

    @pytest.mark.parametrize("clients", [None, ["chexpert"]])
    def test_a_filter_is_where_it_is_wanted_alone_and_comes_last(self, export, folder, clients):
        recipe, privacy = SurgicalAggregationRecipe(), PercentilePrivacy(percentile=20)
        recipe.add_client_output_filter(privacy, tasks=["train"], clients=clients)
        job, plain = export(recipe), folder()
        assert set(meta(job)["deploy_map"]) == {
            "app_server", "app_client", *(f"app_{site}" for site in clients or ()),
        }  # fmt: skip
        if clients:
            assert loaded(job, "nih") == loaded(plain, "nih")
        changed = loaded(job, "chexpert")
        added = changed["task_result_filters"][0]["filters"].pop()
        assert added["path"].endswith("PercentilePrivacy") and added["args"]["percentile"] == 20
        assert changed == loaded(plain, "chexpert")

    def test_log_streaming_configuration_resources_and_a_tracker_are_in_the_job(self, export):
        recipe = SurgicalAggregationRecipe()
        recipe.enable_log_streaming("audit.log")
        recipe.add_client_config({"np_download_chunk_size": 0})
        set_recipe_meta(recipe, JobMetaKey.RESOURCE_SPEC, {"nih": {"num_of_gpus": 1}})
        add_experiment_tracking(recipe, "tensorboard", {"tb_folder": "curves"})
        job = export(recipe)
        client = json.loads((job / "app_client" / CLIENT).read_text())
        assert client["components"][-1]["args"] == {"log_file_name": "audit.log"}
        assert client["np_download_chunk_size"] == 0
        assert meta(job)["resource_spec"] == {"nih": {"num_of_gpus": 1}}
        own, server = (loaded(j, "server")["components"] for j in (JOBS / "surgical", job))
        assert server[: len(own)] == own
        logs, tracker = server[len(own) :]
        assert logs["path"].endswith("JobLogReceiver")
        assert tracker["path"].endswith("TBAnalyticsReceiver")
        assert tracker["args"]["tb_folder"] == "curves"


@pytest.mark.parametrize(("arguments", "message"), [
    ({"learn_rate": 1e-3}, "no setting 'learn_rate'; nearest known: learning_rate"),
    ({"sites": "nih,chexpert"}, "needs the names of the sites, .* got 'nih,chexpert'"),
    ({"sites": ["nih"]}, "needs the results of 2 sites; got nih"),
    ({"per_site_config": {"nih": {"rate": 1e-5}}},
     "a site of job 'surgical' has no setting 'rate'"),
])  # fmt: skip
def test_a_mistake_is_told_at_once(arguments, message):
    with pytest.raises(ValueError, match=message):
        SurgicalAggregationRecipe(**arguments)


@pytest.mark.parametrize("env", [{"num_clients": 2}, {"clients": ["nih", "x"]}])
def test_an_environment_without_the_sites_is_refused(env, tmp_path):
    with pytest.raises(JobError, match=r"Give it clients=\['nih', 'chexpert'\]"):
        SurgicalAggregationRecipe().run(SimEnv(workspace_root=str(tmp_path), **env))
    assert not list(tmp_path.iterdir())
