import json
import re
import shutil
from pathlib import Path

import pytest

from cxr_study.jobs import job_folder
from cxr_study.jobs.command_line_settings import JobError
from cxr_study.jobs.job_folder import CLIENT_CONFIG, SERVER_CONFIG

JOBS = Path(__file__).parents[3] / "jobs"
SURGICAL = JOBS / "surgical"


def content(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def copy(tmp_path):
    """Copy the surgical job with some settings; returns the copy."""

    def make(settings=None, sites=("a", "b"), per_site=None):
        target = tmp_path / "copies" / "job"
        job_folder.copy(SURGICAL, target, sites=sites, settings=settings or {}, per_site=per_site)
        return target

    return make


class TestSettings:
    def test_a_value_that_cannot_be_read_is_refused_by_its_file_and_line(self, tmp_path):
        shutil.copytree(SURGICAL, tmp_path / "job")
        config = tmp_path / "job" / SERVER_CONFIG
        config.write_text(re.sub("(?m)^num_rounds = .*$", "num_rounds = many", config.read_text()))
        with pytest.raises(JobError, match=rf"^{config}, line \d+: setting 'num_rounds' ne"):
            job_folder.read_settings(tmp_path / "job")

    @pytest.mark.parametrize("job", [Path("none"), SURGICAL / "meta.json"])
    def test_what_is_no_job_is_refused(self, job):
        with pytest.raises(JobError, match=r"config_fed_server\.conf does not exist; a job folder"):
            job_folder.read_settings(job)


def test_sites_are_those_of_the_deploy_map():
    assert job_folder.sites(SURGICAL) == ("nih", "chexpert")


class TestCopy:
    def test_without_settings_only_the_sites_change(self, copy):
        original, copied = content(SURGICAL), content(copy(sites=("nih", "chexpert")))
        assert copied.pop(Path("meta.json")) and original.pop(Path("meta.json"))
        assert copied == original

    def test_sites_are_written_and_nothing_else_of_the_meta(self, copy):
        meta = json.loads((copy(sites=("a", "b", "c")) / "meta.json").read_text())
        assert meta["deploy_map"].pop("app_client") == ["a", "b", "c"]
        own = json.loads((SURGICAL / "meta.json").read_text())
        del own["deploy_map"]["app_client"]
        assert meta == own

    def test_flare_waits_for_as_many_sites_as_a_round_needs(self, copy):
        job = copy({"min_clients": 3}, sites=("a", "b", "c", "d"))
        assert json.loads((job / "meta.json").read_text())["min_clients"] == 3

    def test_settings_are_set_in_both_files_and_every_other_byte_is_kept(self, copy):
        target = copy({"num_rounds": 3, "strategy": "fedbn", "hidden": 256})
        strategy = ('strategy = "fedbn+"      ', 'strategy = "fedbn"      ')
        for name, replaced in {
            SERVER_CONFIG: [("num_rounds = 12 ", "num_rounds = 3 "), strategy],
            CLIENT_CONFIG: [("hidden = 0 ", "hidden = 256 "), strategy],
        }.items():
            text = (SURGICAL / name).read_text()
            for old, new in replaced:
                assert text.count(old) == 1
                text = text.replace(old, new)
            assert (target / name).read_text() == text

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("sites", "/my data/of # 1"),
            ("initial_body", "C:\\runs\\body.npz"),
            ("sites", r"\d+/(gamma|beta)$"),
            ("initial_body", 'say "dense"'),
            ("mixed_precision", True),
            ("report_counts", True),
            ("learning_rate", 1e-5),
            ("learning_rate", 1),
            ("seed", 3),
        ],
    )
    def test_a_value_is_read_back_as_it_was_set(self, copy, name, value):
        settings = job_folder.read_settings(copy({name: value}))
        assert settings.pop(name) == value
        own = job_folder.read_settings(SURGICAL)
        del own[name]
        assert settings == own

    def test_the_job_itself_stays_as_it_is(self, copy):
        before = content(SURGICAL)
        copy({"num_rounds": 99})
        assert content(SURGICAL) == before

    def test_a_copy_can_be_copied(self, copy, tmp_path):
        first = copy({"num_rounds": 3, "learning_rate": 1e-5})
        job_folder.copy(first, tmp_path / "second", sites=["c"], settings={"seed": 5})
        settings = job_folder.read_settings(tmp_path / "second")
        assert (settings["num_rounds"], settings["learning_rate"], settings["seed"]) == (3, 1e-5, 5)

    @pytest.mark.parametrize(
        ("job", "settings", "message"),
        [
            ("surgical", {"num_round": 3}, "job 'surgical' has no setting 'num_round'; nearest"),
            ("surgical", {"num_rounds": "three"}, "setting 'num_rounds' needs a whole number"),
            ("surgical", {"epochs": 0}, "epochs must be at least 1"),
            (
                "census",
                {"min_count": "ten"},
                "needs a value like the job's own 10; got",
            ),
        ],
    )
    def test_what_the_job_cannot_have_is_refused(self, tmp_path, job, settings, message):
        with pytest.raises(ValueError, match=message):
            job_folder.copy(JOBS / job, tmp_path / "job", sites=["a", "b"], settings=settings)
        assert not (tmp_path / "job").exists()

    def test_a_job_without_meta_is_refused(self, tmp_path):
        shutil.copytree(SURGICAL, tmp_path / "job")
        (tmp_path / "job/meta.json").unlink()
        with pytest.raises(JobError, match=r"meta\.json does not exist"):
            job_folder.sites(tmp_path / "job")


class TestPerSite:
    """A site with settings of its own has an app of its own."""

    RATE = {"b": {"learning_rate": 1e-5, "epochs": 2}}  # noqa: RUF012

    def test_its_app_differs_from_the_others_in_its_settings_alone(self, copy):
        job = copy({"seed": 5}, sites=("a", "b", "c"), per_site=self.RATE)
        assert job_folder.client_apps(job) == {"a": "app_client", "c": "app_client", "b": "app_b"}
        shared, own = (content(job / app) for app in ("app_client", "app_b"))
        config = Path("config/config_fed_client.conf")
        assert own.pop(config) == shared.pop(config).replace(
            b"learning_rate = 0.001 ", b"learning_rate = 1e-05 ", 1
        ).replace(b"epochs = 1 ", b"epochs = 2 ")
        assert own == shared and len(shared) == 1

    def test_its_settings_are_read_for_it_alone(self, copy):
        job = copy({"seed": 5}, per_site=self.RATE)
        names = ("seed", "learning_rate", "epochs", "num_rounds")
        assert [job_folder.read_settings(job, "b")[name] for name in names] == [5, 1e-5, 2, 12]
        assert job_folder.read_settings(job, "a") == job_folder.read_settings(job)
        assert [job_folder.read_settings(job)[name] for name in names] == [5, 1e-3, 1, 12]

    def test_its_setting_wins_over_the_one_for_all(self, copy):
        job = copy({"epochs": 4}, per_site=self.RATE)
        assert [job_folder.read_settings(job, site)["epochs"] for site in "ab"] == [4, 2]

    def test_no_app_tells_of_another_site(self, copy):
        job = copy(sites=("north", "south"), per_site={"south": {"seed": 1}, "north": {"seed": 2}})
        for site, other in (("north", "south"), ("south", "north")):
            for path, data in content(job / f"app_{site}").items():
                assert other not in path.as_posix() and other.encode() not in data

    def test_where_every_site_has_its_own_none_gets_the_shared_app(self, copy):
        job = copy(per_site={"a": {"seed": 1}, "b": {"seed": 2}})
        deployed = json.loads((job / "meta.json").read_text())["deploy_map"]
        assert deployed == {"app_server": ["server"], "app_a": ["a"], "app_b": ["b"]}
        assert job_folder.sites(job) == ("a", "b")

    def test_a_copy_of_a_copy_keeps_it_and_settings_for_all_reach_it(self, copy, tmp_path):
        first = copy(sites=("a", "b", "c"), per_site={**self.RATE, "c": {"seed": 9}})
        second = tmp_path / "second"
        job_folder.copy(
            first, second, sites=["a", "b"], settings={"epochs": 4}, per_site={"b": {"seed": 7}}
        )
        assert not (second / "app_c").exists()
        settings = job_folder.read_settings(second, "b")
        assert [settings[name] for name in ("learning_rate", "epochs", "seed")] == [1e-5, 4, 7]
        assert job_folder.read_settings(second, "a")["seed"] == 0

    @pytest.mark.parametrize(
        ("per_site", "message"),
        [
            ({"x": {"seed": 1}}, "given for site 'x', which takes no part; known: a, b"),
            ({"a": {"sed": 1}}, "a site of job 'surgical' has no setting 'sed'; nearest known: s"),
            ({"a": {"num_rounds": 1}}, "a site of job 'surgical' has no setting 'num_rounds'"),
            ({"a": {"seed": "x"}}, "setting 'seed' needs a whole number"),
            ({"a": {"epochs": 0}}, "epochs must be at least 1"),
            ({"a": {"strategy": "fedbn"}}, "setting 'strategy' must be the same at every site"),
        ],
    )
    def test_what_cannot_be_is_refused(self, copy, tmp_path, per_site, message):
        with pytest.raises(ValueError, match=re.escape(message)):
            copy(per_site=per_site)
        assert not (tmp_path / "copies").exists()

    def test_a_site_whose_app_would_have_anothers_name_is_refused(self, copy):
        with pytest.raises(JobError, match="needs another name than 'client'"):
            copy(sites=("client", "b"), per_site={"client": {"seed": 1}})

    def test_settings_of_a_site_that_the_job_lacks_are_refused(self):
        with pytest.raises(JobError, match="job 'surgical' has no site 'nhi'; nearest known: nih"):
            job_folder.read_settings(SURGICAL, "nhi")


def test_fewer_sites_than_the_job_waits_for_are_refused():
    def check(sites, **settings):
        job_folder.check(SURGICAL, sites=sites, settings=settings, per_site={})

    with pytest.raises(JobError, match=r"needs the results of 2 sites; got a\. Add sites, or set"):
        check(["a"])
    check(["a"], min_clients=1)
    with pytest.raises(JobError, match="of 3 sites; got a, b"):
        check(["a", "b"], min_clients=3)
    with pytest.raises(JobError, match="sites need names"):
        check(["a", "a"])


def test_a_folder_that_exists_is_left_alone(tmp_path):
    with pytest.raises(JobError, match="exists"):
        job_folder.copy(SURGICAL, tmp_path, sites=["a"], settings={})
