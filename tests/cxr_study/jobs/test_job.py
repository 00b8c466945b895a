"""A job: what it may be asked to be, and what of it stands in which file."""

import json
import re
import shutil
from pathlib import Path

import pytest

from cxr_study.jobs import folder
from cxr_study.jobs.job import ALIKE, Job, check_names
from cxr_study.jobs.job_export import write
from cxr_study.jobs.methods import JOBS, METHODS
from cxr_study.jobs.presets import PRESETS, JobError
from surgical_aggregation.aggregation.batch_norm_strategy import STRATEGIES

SURGICAL = Path(__file__).parents[3] / "jobs" / "surgical"
SERVER = "app_server/config/config_fed_server.json"
CLIENT = "config/config_fed_client.json"
RATE = {"b": {"learning_rate": 1e-5, "epochs": 2}}
BOTH = pytest.mark.parametrize("of", ["surgical", SURGICAL], ids=["by name", "a folder"])


def written(job, target):
    """A job, written and read again."""
    write(job, target)
    return Job.from_folder(target)


def read(*parts):
    return json.loads(Path(*parts).read_text())


class TestOf:
    @pytest.mark.parametrize("name", JOBS)
    def test_by_name_and_by_its_folder_it_is_the_same(self, name):
        by_name, of_folder = Job.of(name), Job.of(SURGICAL.with_name(name))
        for fact in ("name", "method", "sites", "settings", "per_site", "of_site", "encrypted",
                     "has_own_site", "trains", "at_server"):  # fmt: skip
            if name != "census" or fact != "has_own_site":  # whose sites have no `Site`
                assert getattr(by_name, fact) == getattr(of_folder, fact), fact
        typed = by_name.at_server
        assert {name: getattr(typed, name) for name in by_name.settings} == by_name.settings
        assert typed.model_fields_set == by_name.settings.keys()

    def test_a_folder_that_is_not_whole_is_refused(self, tmp_path):
        with pytest.raises(JobError, match=r"meta\.json does not exist; a job folder"):
            Job.from_folder(tmp_path)
        shutil.copytree(SURGICAL, tmp_path / "job")
        config = tmp_path / "job" / SERVER
        config.write_text(config.read_text().replace('"num_rounds": 12', '"num_rounds": many'))
        with pytest.raises(JobError, match=rf"^{config}, line \d+: JSON is needed"):
            Job.of(tmp_path / "job")

    @pytest.mark.parametrize("change", [
        {"name": None}, {"name": 3}, {"deploy_map": None}, {"deploy_map": ["app_server"]},
        {"deploy_map": {"app_server": ["server"]}}, {"deploy_map": {"app_client": ["nih"]}},
        {"deploy_map": {"app_server": ["server"], "app_client": "nih"}},
        {"deploy_map": {"app_server": ["server"], "app_client": []}},
        {"deploy_map": {"app_server": ["server"], "app_client": [1]}},
    ])  # fmt: skip
    def test_a_meta_without_name_or_sites_and_a_list_are_refused(self, tmp_path, change):
        job = shutil.copytree(SURGICAL, tmp_path / "job")
        meta = {**read(job, folder.META), **change}
        meta = {name: value for name, value in meta.items() if value is not None}
        (job / folder.META).write_text(json.dumps(meta))
        with pytest.raises(JobError, match=r"meta\.json needs a 'name', and a 'deploy_map' with"):
            Job.of(job)
        for file in (SERVER, folder.META):
            (job / folder.META).write_bytes((SURGICAL / folder.META).read_bytes())
            (job / file).write_text("[1]")
            with pytest.raises(JobError, match=rf"{file}: a JSON object is needed; got \[1\]"):
                Job.of(job)


class TestAsked:
    def test_sites_and_settings_are_set_over_the_preset(self, tmp_path):
        given = ["num_rounds=3", "a:learning_rate=2e-5"]
        job = Job.asked("surgical", sites=["a", "b"], preset="paper", given=given)
        for made in (job, written(job, tmp_path / "job")):
            assert made.sites == ("a", "b")
            assert (made.at_server.num_rounds, made.at_server.backbone) == (3, "densenet121")
            assert (made.at("b").learning_rate, made.at("a").learning_rate) == (5e-5, 2e-5)
        own = {"a": {"learning_rate": 1.0, "epochs": 2}}
        made = Job.asked("surgical", sites=["a", "b"], given=[*given, "a:threads=3"], per_site=own)
        assert made.per_site == {"a": {**own["a"], "threads": 3}}

    @pytest.mark.parametrize("method", METHODS)
    def test_every_method_takes_every_strategy_and_every_recipe(self, method):
        assert Job.asked(method).at_server.strategy == METHODS[method].strategy
        for strategy in STRATEGIES:
            made = Job.asked(method, settings={"strategy": strategy})
            assert made.at("nih").strategy == made.at_server.strategy == strategy
        for preset in sorted(set(PRESETS) - {"recommended"}):
            found = Job.asked(method, preset=preset).settings
            assert found["backbone"] == "densenet121" and found["image_size"] == 224

    def test_a_job_that_trains_nothing_takes_what_it_has_of_a_recipe(self):
        network = {"backbone": "densenet121", "image_size": 224, "hidden": 0, "batch_size": 64}
        for preset in sorted(PRESETS):
            made = Job.asked("evaluation", preset=preset)
            expected = network if preset != "recommended" else {}
            assert made.settings == Job.of("evaluation").settings | expected
            assert not any(made.per_site.values())
        census = Job.asked("census", preset="radiology,recommended", given=["wait_seconds=96"])
        assert census.settings == Job.of("census").settings | {"wait_seconds": 96}
        with pytest.raises(JobError, match="'evaluation' has no setting 'num_rounds'"):
            Job.asked("evaluation", preset="radiology", given=["num_rounds=3"])

    @pytest.mark.parametrize(("job", "how", "message"), [
        ("surgical", {"settings": {"union": "X"}}, "job 'surgical' has no setting 'union'"),
        ("surgical", {"given": ["num_round=3"]}, "has no setting 'num_round'; nearest known: num"),
        ("surgical", {"given": ["epochs=0"]}, "'epochs' needs a whole number, 1 or more; got 0"),
        ("evaluation", {"settings": {"strategy": "x"}}, "'evaluation' has no setting 'strategy'"),
        ("personalised", {"preset": "recommended"},
         "has no setting 'average_decay', which preset 'recommended' sets. Leave"),
        ("surgical", {"sites": ["a"]},
         r"needs the results of 2 sites; got a\. Add sites, or set min_clients=1"),
        ("surgical", {"given": ["min_clients=3"]}, "of 3 sites; got nih, chexpert"),
        ("surgical", {"given": ["num_rounds=0"]}, r"1 or more; got 0\. .* needs continues="),
        ("surgical_he", {"given": ["nih:weighting=samples"]}, "'weighting' must be the same at ev"),
    ])  # fmt: skip
    def test_what_cannot_be_is_refused(self, job, how, message):
        Job.asked("surgical", sites=["a"], given=["min_clients=1"])
        Job.asked("surgical", given=["num_rounds=0", "continues=0043d777"])
        with pytest.raises(ValueError, match=message):
            Job.asked(job, **how)


class TestWrite:
    @BOTH
    @pytest.mark.parametrize("needed", [0, 3])
    def test_the_meta_says_the_sites_and_how_many_a_round_needs(self, tmp_path, of, needed):
        write(Job.of(of).with_settings({"min_clients": needed}, sites="abcd"), tmp_path / "job")
        meta, own = read(tmp_path, "job/meta.json"), read(SURGICAL, "meta.json")
        deployed = {**own["deploy_map"], "app_client": ["a", "b", "c", "d"]}
        assert meta == {**own, "deploy_map": deployed, "min_clients": needed or 4}

    def test_a_copy_differs_in_its_settings_alone_whatever_else_a_hand_has_changed(self, tmp_path):
        mine = shutil.copytree(SURGICAL, tmp_path / "mine")
        server = read(mine, SERVER)
        server["components"][0]["id"], server["mine"] = "my_body", 10
        (mine / SERVER).write_text(json.dumps(server))
        (mine / "app_server/custom/mine.py").touch()
        changed = {"num_rounds": 3, "strategy": "fedbn", "mine": 20, "sites": 'C:\\d # "é"'}
        copy = written(Job.of(mine).with_settings(changed), tmp_path / "job")
        assert copy.settings == {**Job.of(SURGICAL).settings, **changed}
        assert copy.folder.server == {**server, "num_rounds": 3, "strategy": "fedbn", "mine": 20}
        client = read(SURGICAL, "app_client", CLIENT)
        client |= {"strategy": "fedbn", "sites": changed["sites"]}
        assert copy.folder.clients["app_client"] == client
        assert (tmp_path / "job/app_server/custom/mine.py").is_file()
        with pytest.raises(JobError, match="needs a value like the job's own 10; got 'ten'"):
            Job.of(mine).with_settings({"mine": "ten"})


class TestPerSite:
    """A site with settings of its own has an app of its own."""

    @BOTH
    def test_its_app_differs_from_the_others_in_its_settings_alone(self, tmp_path, of):
        job = Job.of(of).with_settings({"seed": 5, "epochs": 4}, RATE, sites="abc")
        made = written(job, tmp_path / "job")
        assert made.folder.apps == {"a": "app_client", "c": "app_client", "b": "app_b"}
        shared, own = made.folder.clients["app_client"], made.folder.clients["app_b"]
        assert own == {**shared, **RATE["b"]}
        assert (shared["seed"], shared["epochs"], shared["learning_rate"]) == (5, 4, 1e-3)
        assert made.per_site == job.per_site == RATE and made.at("a") is made.at_server
        assert made.at("b").seed == 5 and made.at("b").num_rounds == 12

    @BOTH
    def test_where_every_site_has_its_own_no_app_tells_of_another(self, tmp_path, of):
        per_site = {"south": {"seed": 1}, "north": {"seed": 2}}
        write(Job.of(of).with_settings({}, per_site, sites=("north", "south")), tmp_path / "job")
        apps = {"app_server": ["server"], "app_north": ["north"], "app_south": ["south"]}
        assert read(tmp_path, "job/meta.json")["deploy_map"] == apps
        for site, other in (("north", "south"), ("south", "north")):
            text = (tmp_path / "job" / f"app_{site}" / CLIENT).read_text()
            assert other not in text and site not in text

    def test_a_copy_of_a_copy_keeps_it_and_settings_for_all_reach_it(self, tmp_path):
        first = Job.of("surgical").with_settings({}, {**RATE, "c": {"seed": 9}}, sites="abc")
        first = written(first, tmp_path / "first")
        second = first.with_settings({"epochs": 4}, {"b": {"seed": 7}}, sites="abd")
        for job in (second, written(second, tmp_path / "second")):
            assert job.per_site == {"b": {"learning_rate": 1e-5, "seed": 7}}
            assert (job.at("b").epochs, job.at("a").seed, job.at("d").seed) == (4, 0, 0)
        apps = {path.name for path in (tmp_path / "second").glob("app_*")}
        assert apps == {"app_b", "app_client", "app_server"}

    @BOTH
    def test_settings_that_do_not_go_with_those_a_site_has_already_are_refused(self, of):
        job = Job.of(of).with_settings({}, {"b": {"focal_gamma": 2.0}}, sites="ab")
        with pytest.raises(ValueError, match="refit_model and focal_gamma cannot be combined"):
            job.with_settings({"refit_model": "best"})
        job.with_settings({"refit_model": "best"}, sites="ac")

    @BOTH
    @pytest.mark.parametrize(("per_site", "message"), [
        ({"x": {"seed": 1}}, "given for site 'x', which is not in the job; known: a, client"),
        ({"a": {"sed": 1}}, "a site of job 'surgical' has no setting 'sed'; nearest known: s"),
        ({"a": {"num_rounds": 1}}, "a site of job 'surgical' has no setting 'num_rounds'"),
        ({"a": {"epochs": 0}}, "'epochs' needs a whole number, 1 or more; got 0"),
        ({"a": {"strategy": "fedbn"}}, "setting 'strategy' must be the same at every site; it is "
         "given for site 'a'. Set it for all of them: strategy=fedbn"),
        ({"client": {"seed": 1}}, "cannot be called 'client'"),
    ])  # fmt: skip
    def test_what_cannot_be_is_refused(self, of, per_site, message):
        with pytest.raises(ValueError, match=re.escape(message)):
            Job.of(of).with_settings({}, per_site, sites=("a", "client"))


def test_what_sites_must_agree_on_is_a_setting_of_theirs():
    known = {name for job in METHODS for name in Job.of(job).of_site}
    assert {*ALIKE} <= known


@pytest.mark.parametrize("sites", [
    ["a", "a"], ["a b"], ["../x"], [""], [],
    *[["a", name] for name in ("server", "a.b", "a@b", "süd", "-a")],
])  # fmt: skip
def test_sites_need_names_of_their_own_that_flare_can_use(sites):
    check_names(["nih", "Charite-2", "_a", "server-2", "1"])
    with pytest.raises(JobError, match="sites need different names"):
        check_names(sites)
