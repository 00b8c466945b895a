"""The recipe as FLARE's users meet it; it runs in tests/simulator and tests/poc."""

import json
from pathlib import Path

import pytest
from nvflare.apis.job_def import JobMetaKey
from nvflare.app_common.filters.percentile_privacy import PercentilePrivacy
from nvflare.recipe import SimEnv, add_experiment_tracking, set_per_site_config, set_recipe_meta

from cxr_study.jobs import job_folder
from cxr_study.jobs.fed_job import StudyJob, read
from cxr_study.jobs.job_templates import METHODS
from cxr_study.jobs.recipe import SurgicalAggregationRecipe
from cxr_study.jobs.settings import JobError
from surgical_aggregation.aggregation.strategy import StrategyError
from tiny_site import TinySite

ROOT = Path(__file__).parents[3]
HALVES = ("server", "client")


def content(folder):
    """Every file of an exported job, tasks of filters in a fixed order."""
    return {
        path.relative_to(folder).as_posix(): _sorted(path.read_text())
        for path in folder.rglob("*")
        if path.is_file()
    }


def _sorted(text):
    if not text.startswith("{"):
        return text
    parsed = json.loads(text)
    for entry in parsed.get("task_data_filters", []) + parsed.get("task_result_filters", []):
        entry["tasks"].sort()
    return parsed


@pytest.fixture
def export(tmp_path):
    """Export a recipe; what is in the exported job."""

    def make(recipe):
        recipe.export(str(tmp_path / "exported"))
        return content(tmp_path / "exported" / recipe.name)

    return make


@pytest.fixture
def of_folder(tmp_path):
    """What FLARE's export makes of a job folder with some knobs set."""

    def make(method, sites=("nih", "chexpert"), settings=None, per_site=None):
        job = tmp_path / "copy"
        job_folder.copy(
            ROOT / "jobs" / method, job, sites=sites, settings=settings or {}, per_site=per_site
        )
        configuration = read(job)
        fed_job = StudyJob(method, configuration)
        fed_job.add_sites(configuration)
        fed_job.export_job(str(tmp_path / "of_folder"))
        return content(tmp_path / "of_folder" / method)

    return make


class TestJob:
    @pytest.mark.parametrize("method", METHODS)
    def test_it_is_that_of_the_methods_folder(self, method, export, of_folder):
        assert export(SurgicalAggregationRecipe(method=method)) == of_folder(method)

    def test_every_knob_reaches_its_place(self, export, of_folder):
        recipe = SurgicalAggregationRecipe(
            sites=["a", "b", "c"],
            name="mine",
            strategy="fedbn",
            num_rounds=3,
            min_clients=3,
            site_files="/data/sites",
            initial_body="/data/body.npz",
            learning_rate=2e-4,
            server_optimizer="fedadam",
        )
        assert recipe.name == "mine"
        job = export(recipe)
        assert job.pop("meta.json")["name"] == "mine"
        settings = {
            "strategy": "fedbn", "num_rounds": 3, "min_clients": 3, "sites": "/data/sites",
            "initial_body": "/data/body.npz", "learning_rate": 2e-4, "server_optimizer": "fedadam",
        }  # fmt: skip
        of_folder = of_folder("surgical", ["a", "b", "c"], settings)
        assert of_folder.pop("meta.json")["min_clients"] == 3
        assert job == of_folder

    def test_a_preset_lies_under_the_knobs(self, export):
        recipe = SurgicalAggregationRecipe(preset="paper", num_rounds=3)
        job = export(recipe)
        server, client = (job[f"app_{half}/config/config_fed_{half}.json"] for half in HALVES)
        assert server["workflows"][0]["args"]["num_rounds"] == 3
        assert server["workflows"][0]["args"]["patience"] == 25
        assert client["components"][0]["args"]["backbone"] == "densenet121"

    def test_another_site_component_takes_the_place_of_the_chest_xray_site(self, export):
        recipe = SurgicalAggregationRecipe(site=TinySite("{SITE_NAME}", "table.json"))
        (site,) = [
            entry
            for entry in export(recipe)["app_client/config/config_fed_client.json"]["components"]
            if entry["id"] == "site"
        ]
        assert site["path"] == "tiny_site.TinySite"
        assert site["args"] == {"site": "{SITE_NAME}", "table": "table.json"}


class TestPerSite:
    RATES = {"nih": {"learning_rate": 1e-5}}  # noqa: RUF012

    def test_it_is_the_folder_with_apps_of_their_own(self, export, of_folder):
        recipe = SurgicalAggregationRecipe(per_site_config=self.RATES)
        assert export(recipe) == of_folder("surgical", per_site=self.RATES)

    def test_flares_own_helper_does_the_same(self, export, of_folder):
        recipe = SurgicalAggregationRecipe()
        set_per_site_config(recipe, self.RATES)
        assert recipe.configured_sites() == ["nih"]
        assert export(recipe) == of_folder("surgical", per_site=self.RATES)

    def test_a_wrong_knob_is_told_at_once(self):
        with pytest.raises(JobError, match="a site of job 'surgical' has no setting 'rate'"):
            SurgicalAggregationRecipe(per_site_config={"nih": {"rate": 1e-5}})


class TestHelpers:
    """What FLARE's recipe helpers add is in the job, and nothing of the job is lost."""

    SERVER = "config/config_fed_server.json"

    def test_a_filter_for_one_site_is_at_that_site_alone(self, export, of_folder):
        recipe = SurgicalAggregationRecipe()
        recipe.add_client_output_filter(
            PercentilePrivacy(percentile=20), tasks=["train"], clients=["chexpert"]
        )
        job, plain = export(recipe), of_folder("surgical")
        assert job["meta.json"]["deploy_map"] == {
            "app_server": ["server"],
            "app_client": ["nih"],
            "app_chexpert": ["chexpert"],
        }
        config = "config/config_fed_client.json"
        assert job[f"app_client/{config}"] == plain[f"app_client/{config}"]
        ((added,), rest) = self._split(job[f"app_chexpert/{config}"])
        assert added["args"]["percentile"] == 20
        assert rest == plain[f"app_client/{config}"]

    def test_a_filter_for_all_comes_last_and_leaves_them_one_app(self, export):
        recipe = SurgicalAggregationRecipe()
        recipe.add_client_output_filter(PercentilePrivacy(), tasks=["train"])
        job = export(recipe)
        assert set(job["meta.json"]["deploy_map"]) == {"app_server", "app_client"}
        (entry,) = job["app_client/config/config_fed_client.json"]["task_result_filters"]
        names = [filter_["path"].rpartition(".")[2] for filter_ in entry["filters"]]
        assert names == ["LabelHead", "PercentilePrivacy"]

    def test_log_streaming_configuration_and_resources_are_in_the_job(self, export):
        recipe = SurgicalAggregationRecipe()
        recipe.enable_log_streaming("audit.log")
        recipe.add_client_config({"np_download_chunk_size": 0})
        set_recipe_meta(recipe, JobMetaKey.RESOURCE_SPEC, {"nih": {"num_of_gpus": 1}})
        job = export(recipe)
        client = job["app_client/config/config_fed_client.json"]
        assert client["components"][-1]["args"] == {"log_file_name": "audit.log"}
        assert client["np_download_chunk_size"] == 0
        assert job["meta.json"]["resource_spec"] == {"nih": {"num_of_gpus": 1}}
        assert "JobLogReceiver" in str(job["app_server/config/config_fed_server.json"])

    def test_another_tracker_stands_beside_the_jobs_own(self, export, of_folder):
        recipe = SurgicalAggregationRecipe()
        add_experiment_tracking(recipe, "tensorboard", {"tb_folder": "curves"})
        server = export(recipe)[f"app_server/{self.SERVER}"]
        added = server["components"].pop()
        assert added["path"].endswith("TBAnalyticsReceiver")
        assert added["args"]["tb_folder"] == "curves"
        assert server == of_folder("surgical")[f"app_server/{self.SERVER}"]

    @staticmethod
    def _split(client):
        """Filters that are no part of the job's own, and the rest."""
        (entry,) = client["task_result_filters"]
        added = [f for f in entry["filters"] if not f["path"].startswith("surgical_aggregation")]
        entry["filters"] = [f for f in entry["filters"] if f not in added]
        return added, client


class TestMistakes:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"method": "surgicl"}, "no method 'surgicl'; nearest known: surgical"),
            ({"preset": "papers"}, "no preset 'papers'; nearest known: paper"),
            ({"learn_rate": 1e-3}, "no setting 'learn_rate'; nearest known: learning_rate"),
            ({"num_rounds": "ten"}, "setting 'num_rounds' needs a whole number"),
            ({"sites": "nih,chexpert"}, r"needs the names of the sites, .* got 'nih,chexpert'"),
            ({"sites": ["nih"]}, "needs the results of 2 sites; got nih"),
        ],
    )
    def test_are_told_at_once(self, arguments, message):
        with pytest.raises(JobError, match=message):
            SurgicalAggregationRecipe(**arguments)

    def test_an_unknown_strategy_is_told_at_once(self):
        with pytest.raises(StrategyError, match=r"must be one of .*; got 'fedprox'"):
            SurgicalAggregationRecipe(strategy="fedprox")

    @pytest.mark.parametrize("env", [{"num_clients": 2}, {"clients": ["nih", "x"]}])
    def test_an_environment_without_the_sites_is_refused(self, env, tmp_path):
        with pytest.raises(JobError, match=r"Give it clients=\['nih', 'chexpert'\]"):
            SurgicalAggregationRecipe().run(SimEnv(workspace_root=str(tmp_path), **env))
        assert not list(tmp_path.iterdir())
