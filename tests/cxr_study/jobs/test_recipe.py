"""What the recipe exports, as FLARE loads it; simulator/ and poc/ run it."""

import json

import pytest
from nvflare.apis.job_def import JobMetaKey
from nvflare.app_common.filters.percentile_privacy import PercentilePrivacy
from nvflare.fuel.utils.config_factory import ConfigFactory
from nvflare.fuel.utils.dict_utils import extract_first_level_primitive
from nvflare.fuel.utils.json_scanner import JsonScanner
from nvflare.fuel.utils.wfconf import resolve_var_refs
from nvflare.job_config.api import FedJob
from nvflare.recipe import SimEnv, add_experiment_tracking, set_per_site_config, set_recipe_meta
from nvflare.widgets.widget import Widget

from cxr_study.jobs import flare_job
from cxr_study.jobs.flare_job import FlareJob
from cxr_study.jobs.folder import read
from cxr_study.jobs.job import Job
from cxr_study.jobs.job_export import write
from cxr_study.jobs.methods import JOBS
from cxr_study.jobs.presets import JobError
from cxr_study.jobs.recipe import JobRecipe
from tiny_job import JOBS as FOLDERS
from tiny_job import walk
from tiny_site import TinySite

ENVIRONMENT = {name: f"/data/{name}" for name in ("CXR_SITES", "CXR_INITIAL_BODY", "CXR_MODEL")}
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
def plain(tmp_path):
    """The surgical job without a recipe."""

    def make(sites=("nih", "chexpert"), per_site=None):
        write(Job.of("surgical").with_settings({}, per_site, sites=sites), tmp_path / "plain")
        return read(tmp_path / "plain")

    return make


def loaded(job, party):
    """A party's configuration as FLARE loads it there, without the settings on its top."""
    app, half = ("app_server", "server") if party == "server" else (read(job).apps[party], "client")
    config = ConfigFactory.load_config(f"config_fed_{half}.json", [str(job / app / "config")])
    config = config.to_dict()
    values = extract_first_level_primitive(config)
    resolve_var_refs(JsonScanner(config), {**values, "SITE_NAME": party})
    return config


def says(job):
    """All that a job says, but for where it is."""
    return job.meta, job.server, job.clients


@pytest.mark.parametrize("method", JOBS)
def test_what_flare_loads_has_every_argument_that_the_recipe_has_given(method, export, monkeypatch):
    """FLARE's export reads attributes, and drops in silence what it does not find there."""
    given, build = [], flare_job.instantiate_class

    def built(path, arguments):
        given.append((path, arguments))
        return build(path, arguments)

    monkeypatch.setattr(flare_job, "instantiate_class", built)
    job = export(JobRecipe(Job.of(method)))
    own = {"{SITE_NAME}": "nih", **{f"{{${name}}}": value for name, value in ENVIRONMENT.items()}}
    values = {f"{{{name}}}": value for name, value in Job.of(method).settings.items()}

    def resolved(value):
        if isinstance(value, dict):
            return {key: resolved(item) for key, item in value.items()}
        value = values.get(value, value) if isinstance(value, str) else value
        return own.get(value, value) if isinstance(value, str) else value

    found = [(node["path"], node.get("args", {})) for party in ("server", "nih")
             for node in walk(loaded(job, party)) if "path" in node]  # fmt: skip
    wanted = [(path, resolved(arguments)) for path, arguments in given]
    assert sorted(found, key=repr) == sorted(wanted, key=repr)
    assert not [*job.rglob("*.py")]


class Silent(Widget):
    """Keeps an argument under another name."""

    def __init__(self, silence):
        super().__init__()
        self.seconds = silence


def test_what_a_workspace_says_already_stays(tmp_path):
    (tmp_path / "local").mkdir()
    own = {"class_allow_list": ["mine.Own"], "components": []}
    (tmp_path / "local/resources.json").write_text(json.dumps(own))
    flare_job.allow_classes(tmp_path, ["our.Part"])
    found = json.loads((tmp_path / "local/resources.json").read_text())
    assert found == {**own, "class_allow_list": ["mine.Own", "our.Part"]}


def test_an_argument_that_flares_export_would_drop_is_refused(monkeypatch):
    monkeypatch.setattr(flare_job, "PATHS", {"SiteWatch": f"{__name__}.Silent"})
    monkeypatch.setattr(flare_job, "instantiate_class", lambda _, arguments: Silent(**arguments))
    with pytest.raises(JobError, match="SiteWatch keeps no attribute 'silence'"):
        FlareJob(Job.of("surgical")).component("SiteWatch", silence="site_silence")


def test_a_job_of_a_folder_has_no_recipe():
    with pytest.raises(JobError, match="a recipe needs a job by name; got the folder"):
        JobRecipe(Job.of(FOLDERS / "surgical"))


def test_flares_simulator_is_to_allow_the_jobs_classes_and_no_others(monkeypatch, tmp_path):
    monkeypatch.setattr(FedJob, "simulator_run", lambda job, workspace, *_, **__: 0)
    recipe = JobRecipe(Job.of("surgical"))
    recipe.execute(SimEnv(clients=["nih", "chexpert"], workspace_root=str(tmp_path)))
    resources = json.loads((tmp_path / "surgical/local/resources.json").read_text())
    ours = {path for path in resources["class_allow_list"] if not path.startswith("nvflare.")}
    named = Job.of(FOLDERS / "surgical").folder.classes
    assert ours == {path for path in named if not path.startswith("nvflare.")}


def test_another_site_component_stands_in_place_of_ours_without_its_settings(export):
    asked = Job.asked("surgical", preset="paper", settings={"num_rounds": 3})
    job = export(JobRecipe(asked, site=TinySite("{SITE_NAME}", "table.json")))
    train = loaded(job, "server")["workflows"][1]["args"]
    assert (train["num_rounds"], train["patience"]) == (3, 0)
    (site,) = [each for each in loaded(job, "nih")["components"] if each["id"] == "site"]
    own = {"site": "nih", "table": "table.json"}
    assert site == {"id": "site", "path": "tiny_site.TinySite", "args": own}
    exported = Job.from_folder(job)
    settings = exported.settings  # a report says them: none of our own site's
    assert exported.has_own_site and not settings.keys() & {"backbone", "image_size", "sites"}
    assert (settings["strategy"], settings["learning_rate"]) == ("fedbn+", 5e-5)


class TestPerSite:
    """A site with settings of its own has an app of its own; the others share one."""

    SITES = ("nih", "chexpert", "mimic")

    def test_what_flares_helper_sets_is_as_if_it_were_asked_for(self, export, plain):
        recipe = JobRecipe(Job.of("surgical").with_settings({}, sites=self.SITES))
        set_per_site_config(recipe, RATES)
        assert recipe.configured_sites() == ["chexpert"]
        job = export(recipe)
        assert says(read(job)) == says(plain(self.SITES, RATES))
        for app, others in {"app_chexpert": "nih mimic", "app_client": "chexpert"}.items():
            for file in (job / app).rglob("*.json"):
                assert "server" not in file.name
                assert not [name for name in others.split() if name in file.read_text()]

    def test_a_site_that_is_changed_after_an_export_is_on_its_own(self, export, plain):
        recipe = JobRecipe(Job.of("surgical"))
        assert says(read(export(recipe))) == says(plain())
        recipe.add_client_config({"timeout": 5}, clients=["chexpert"])
        job = read(export(recipe))
        assert job.apps == {"nih": "app_client", "chexpert": "app_chexpert"}
        timeouts = {app: config.get("timeout") for app, config in job.clients.items()}
        assert timeouts == {"app_client": None, "app_chexpert": 5}


class TestHelpers:
    """What FLARE's recipe helpers add is in the job, and nothing of the job is lost."""

    @pytest.mark.parametrize("clients", [None, ["chexpert"]])
    def test_a_filter_is_where_it_is_wanted_alone_and_comes_last(self, export, plain, clients):
        recipe, privacy = JobRecipe(Job.of("surgical")), PercentilePrivacy(percentile=20)
        recipe.add_client_output_filter(privacy, tasks=["train"], clients=clients)
        job, (own,) = read(export(recipe)), plain().clients.values()
        assert {*job.clients} == {"app_client", *(f"app_{site}" for site in clients or ())}
        if clients:
            assert job.clients["app_client"] == own
        changed = job.clients[job.apps["chexpert"]]
        added = changed["task_result_filters"][0]["filters"].pop()
        assert added["path"].endswith("PercentilePrivacy") and added["args"]["percentile"] == 20
        assert changed == own

    def test_log_streaming_a_setting_resources_and_a_tracker_are_in_the_job(self, export, plain):
        recipe = JobRecipe(Job.of("surgical"))
        recipe.enable_log_streaming("audit.log")
        recipe.add_client_config({"np_download_chunk_size": 0})
        set_recipe_meta(recipe, JobMetaKey.RESOURCE_SPEC, {"nih": {"num_of_gpus": 1}})
        add_experiment_tracking(recipe, "tensorboard", {"tb_folder": "curves"})
        job = read(export(recipe))
        (client,) = job.clients.values()
        assert client["components"][-1]["args"] == {"log_file_name": "audit.log"}
        assert client["np_download_chunk_size"] == 0
        assert job.meta["resource_spec"] == {"nih": {"num_of_gpus": 1}}
        own, server = plain().server["components"], job.server["components"]
        assert server[: len(own)] == own
        logs, tracker = server[len(own) :]
        assert logs["path"].endswith("JobLogReceiver")
        assert tracker["path"].endswith("TBAnalyticsReceiver")
        assert tracker["args"]["tb_folder"] == "curves"


@pytest.mark.parametrize("env", [{"num_clients": 2}, {"clients": ["nih", "x"]}])
def test_an_environment_without_the_sites_is_refused(env, tmp_path):
    with pytest.raises(JobError, match=r"Give it clients=\['nih', 'chexpert'\]"):
        JobRecipe(Job.of("surgical")).run(SimEnv(workspace_root=str(tmp_path), **env))
    assert not list(tmp_path.iterdir())
