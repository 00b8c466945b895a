import json
import re
import shutil
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from pyhocon import ConfigFactory, HOCONConverter

from cxr_study.jobs import job_folder
from cxr_study.jobs.command_line_settings import JobError
from cxr_study.jobs.components import MOVED
from cxr_study.jobs.job_folder import (
    CLIENT_CONFIG,
    SERVER_CONFIG,
    check_network,
    settings_in,
    with_settings,
)
from cxr_study.training.network_facts import input_facts
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save

JOBS = Path(__file__).parents[3] / "jobs"
SURGICAL = JOBS / "surgical"
TEXT = """\
format_version = 2

rounds = 12        # of this job
rate = 1e-3
name = "a # \\"b\\""  # in quotes
mixed = false

components = [
  { id = "site"
    args { rate = "{rate}" } }
]
"""


def content(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def copy(tmp_path):
    """Copy the surgical job with some settings; returns the copy."""

    def make(settings=None, sites=("a", "b"), per_site=None, job=SURGICAL):
        target = tmp_path / "copies" / "job"
        job_folder.copy(job, target, sites=sites, settings=settings or {}, per_site=per_site)
        return target

    return make


class TestText:
    def test_settings_are_the_primitive_values_at_the_top_with_their_types(self):
        found = settings_in(TEXT)
        assert found == {"rounds": 12, "rate": 1e-3, "name": 'a # "b"', "mixed": False}
        assert type(found["rounds"]) is int and type(found["mixed"]) is bool

    @pytest.mark.parametrize(
        "value", ["c", "/my data/of # 1", "C:\\runs", r"\d+/$", 'say "so"', "é"]
    )
    def test_a_text_is_read_back_as_it_was_set_and_every_other_character_kept(self, value):
        changed = with_settings(TEXT, {"name": value, "elsewhere": 1})
        assert settings_in(changed)["name"] == value
        quoted = json.dumps(value, ensure_ascii=False)
        assert changed == TEXT.replace(r'"a # \"b\""', quoted)

    @pytest.mark.parametrize("config", sorted(JOBS.glob("*/app_*/config/*.conf")), ids=str)
    def test_values_are_those_that_flares_parser_reads(self, config):
        text = config.read_text()
        found, parsed = settings_in(text), ConfigFactory.parse_string(text)
        assert found == {name: parsed[name] for name in found}
        assert [type(value) for value in found.values()] == [type(parsed[name]) for name in found]
        rewritten = HOCONConverter.to_hocon(parsed)  # as FLARE's command does on submission
        assert settings_in("{\n" + rewritten + "\n}") == found

    @pytest.mark.parametrize("value", ["fast", "'fast'", "1 minute", "yes", "1e", ""])
    def test_a_value_that_is_none_is_refused_by_its_setting_and_line(self, value):
        with pytest.raises(JobError) as error:
            settings_in(TEXT.replace("1e-3", value))
        assert str(error.value) == (
            "line 4: setting 'rate' needs a number, true, false, or a text in double quotes; got "
            f"{value}."
        )


class TestRead:
    def test_a_value_that_cannot_be_read_is_refused_by_its_file_and_line(self, tmp_path):
        shutil.copytree(SURGICAL, tmp_path / "job")
        config = tmp_path / "job" / SERVER_CONFIG
        config.write_text(re.sub("(?m)^num_rounds = .*$", "num_rounds = many", config.read_text()))
        with pytest.raises(JobError, match=rf"^{config}, line \d+: setting 'num_rounds' ne"):
            job_folder.read_settings(tmp_path / "job")

    @pytest.mark.parametrize("job", [Path("none"), SURGICAL / "meta.json"])
    def test_what_is_no_job_is_refused(self, job):
        with pytest.raises(JobError, match=r"meta\.json does not exist; a job folder"):
            job_folder.read_settings(job)
        with pytest.raises(JobError, match=r"meta\.json does not exist"):
            job_folder.sites(job)

    def test_a_site_that_the_job_lacks_is_refused(self):
        assert job_folder.sites(SURGICAL) == ("nih", "chexpert")
        with pytest.raises(JobError, match="job 'surgical' has no site 'nhi'; nearest known: nih"):
            job_folder.read_settings(SURGICAL, "nhi")


class TestCopy:
    @pytest.mark.parametrize("needed", [0, 3])
    def test_the_meta_says_the_sites_and_how_many_a_round_needs(self, copy, needed):
        before = content(SURGICAL)
        job = copy({"min_clients": needed}, sites=("a", "b", "c", "d"))
        meta, own = (json.loads((j / "meta.json").read_text()) for j in (job, SURGICAL))
        deployed = {**own["deploy_map"], "app_client": ["a", "b", "c", "d"]}
        assert meta == {**own, "deploy_map": deployed, "min_clients": needed or 4}
        assert content(SURGICAL) == before

    def test_settings_are_set_in_both_files_and_every_other_byte_is_kept(self, copy):
        target = copy({"num_rounds": 3, "strategy": "fedbn", "hidden": 256})
        copied, original = content(target), content(SURGICAL)
        strategy = ('strategy = "fedbn+"      ', 'strategy = "fedbn"      ')
        for name, replaced in {
            SERVER_CONFIG: [("num_rounds = 12 ", "num_rounds = 3 "), strategy],
            CLIENT_CONFIG: [("hidden = 0 ", "hidden = 256 "), strategy],
        }.items():
            text = original.pop(Path(name)).decode()
            for old, new in replaced:
                assert text.count(old) == 1
                text = text.replace(old, new)
            assert copied.pop(Path(name)).decode() == text
        assert copied.pop(Path("meta.json")) and original.pop(Path("meta.json"))
        assert copied == original

    def test_a_job_of_an_earlier_version_names_classes_where_they_are_now(self, copy, tmp_path):
        earlier = shutil.copytree(SURGICAL, tmp_path / "earlier")
        file = earlier / job_folder.SERVER_CONFIG
        text = file.read_text()
        for before, path in MOVED.items():
            assert path in text
            text = text.replace(path, before)
        file.write_text(text)
        target = copy({})
        now = (target / job_folder.SERVER_CONFIG).read_text()
        shutil.rmtree(target)
        assert (copy({}, job=earlier) / job_folder.SERVER_CONFIG).read_text() == now

    def test_values_are_read_back_from_a_copy_of_a_copy(self, copy, tmp_path):
        changed = {
            "sites": "/my data/of # 1", "initial_body": "C:\\runs\\body.npz", "learning_rate": 1,
            "mixed_precision": True, "warmup_learning_rate": 1e-5, "seed": 3,
        }  # fmt: skip
        job_folder.copy(copy(changed), tmp_path / "second", sites=["c"], settings={})
        own = job_folder.read_settings(SURGICAL)
        assert job_folder.read_settings(tmp_path / "second") == {**own, **changed}

    @pytest.mark.parametrize(
        ("job", "settings", "message"),
        [
            ("surgical", {"num_round": 3}, "job 'surgical' has no setting 'num_round'; nearest"),
            ("surgical", {"num_rounds": "three"}, "setting 'num_rounds' needs a whole number"),
            ("surgical", {"epochs": 0}, "epochs must be at least 1"),
            ("census", {"min_count": "ten"}, "needs a value like the job's own 10; got"),
        ],
    )
    def test_what_the_job_cannot_have_is_refused(self, copy, tmp_path, job, settings, message):
        with pytest.raises(ValueError, match=message):
            copy(settings, job=JOBS / job)
        assert not (tmp_path / "copies").exists()

    def test_a_folder_that_exists_is_left_alone(self, tmp_path):
        with pytest.raises(JobError, match="exists"):
            job_folder.copy(SURGICAL, tmp_path, sites=["a"], settings={})


class TestPerSite:
    """A site with settings of its own has an app of its own."""

    RATE = {"b": {"learning_rate": 1e-5, "epochs": 2}}  # noqa: RUF012

    def test_its_app_differs_from_the_others_in_its_settings_alone(self, copy):
        job = copy({"seed": 5, "epochs": 4}, sites=("a", "b", "c"), per_site=self.RATE)
        assert job_folder.client_apps(job) == {"a": "app_client", "c": "app_client", "b": "app_b"}
        shared, own = (content(job / app) for app in ("app_client", "app_b"))
        config = Path("config/config_fed_client.conf")
        assert own.pop(config) == shared.pop(config).replace(
            b"learning_rate = 0.001 ", b"learning_rate = 1e-05 ", 1
        ).replace(b"epochs = 4 ", b"epochs = 2 ", 1)
        assert own == shared and len(shared) == 1
        names = ("seed", "learning_rate", "epochs", "num_rounds")
        assert [job_folder.read_settings(job, "b")[name] for name in names] == [5, 1e-5, 2, 12]
        assert job_folder.read_settings(job, "a") == job_folder.read_settings(job)
        assert [job_folder.read_settings(job)[name] for name in names] == [5, 1e-3, 4, 12]

    def test_where_every_site_has_its_own_no_app_tells_of_another(self, copy):
        job = copy(sites=("north", "south"), per_site={"south": {"seed": 1}, "north": {"seed": 2}})
        deployed = json.loads((job / "meta.json").read_text())["deploy_map"]
        apps = {"app_server": ["server"], "app_north": ["north"], "app_south": ["south"]}
        assert deployed == apps
        for site, other in (("north", "south"), ("south", "north")):
            for path, data in content(job / f"app_{site}").items():
                assert other not in path.as_posix() and other.encode() not in data

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

    def test_weights_that_server_and_sites_must_share_cannot_be_one_sites(self, tmp_path):
        sites, own = ["a", "b"], {"a": {"weighting": "samples"}}
        with pytest.raises(JobError, match="'weighting' must be the same at every site"):
            job_folder.check(JOBS / "surgical_he", sites=sites, settings={}, per_site=own)

    def test_settings_that_do_not_go_with_those_a_site_has_already_are_refused(
        self, copy, tmp_path
    ):
        job_folder.copy(
            SURGICAL, tmp_path / "mine", sites=["a", "b"], settings={},
            per_site={"b": {"focal_gamma": 2.0}},
        )  # fmt: skip
        wish = {"settings": {"refit_model": "best"}, "per_site": {}}
        with pytest.raises(ValueError, match="refit_model and focal_gamma do not go together"):
            job_folder.check(tmp_path / "mine", sites=["a", "b"], **wish)
        job_folder.check(tmp_path / "mine", sites=["a", "c"], **wish)

    @pytest.mark.parametrize(
        ("per_site", "message"),
        [
            ({"x": {"seed": 1}}, "given for site 'x', which takes no part; known: a, client"),
            ({"a": {"sed": 1}}, "a site of job 'surgical' has no setting 'sed'; nearest known: s"),
            ({"a": {"num_rounds": 1}}, "a site of job 'surgical' has no setting 'num_rounds'"),
            ({"a": {"seed": "x"}}, "setting 'seed' needs a whole number"),
            ({"a": {"epochs": 0}}, "epochs must be at least 1"),
            (
                {"a": {"strategy": "fedbn"}},
                "setting 'strategy' must be the same at every site; it is given for site 'a'. Set "
                "it for all of them: strategy=fedbn",
            ),
            ({"client": {"seed": 1}}, "needs another name than 'client'"),
        ],
    )
    def test_what_cannot_be_is_refused(self, copy, tmp_path, per_site, message):
        with pytest.raises(ValueError, match=re.escape(message)):
            copy(sites=("a", "client"), per_site=per_site)
        assert not (tmp_path / "copies").exists()


def test_no_round_is_for_a_job_that_continues_an_earlier_one():
    none = {"num_rounds": 0}
    with pytest.raises(JobError, match="Set continues="):
        job_folder.check(SURGICAL, sites=["a", "b"], settings=none, per_site={})
    going_on = {**none, "continues": "0043d777"}
    job_folder.check(SURGICAL, sites=["a", "b"], settings=going_on, per_site={})


@pytest.mark.parametrize(
    ("sites", "settings", "message"),
    [
        (["a"], {}, r"needs the results of 2 sites; got a\. Add sites, or set min_clients=1"),
        (["a", "b"], {"min_clients": 3}, "of 3 sites; got a, b"),
        (["a", "a"], {}, "sites need names"),
    ],
)
def test_fewer_sites_than_the_job_waits_for_are_refused(sites, settings, message):
    job_folder.check(SURGICAL, sites=["a"], settings={"min_clients": 1}, per_site={})
    with pytest.raises(JobError, match=message):
        job_folder.check(SURGICAL, sites=sites, settings=settings, per_site={})


@pytest.mark.parametrize(("facts", "backbone", "hidden", "message"), [
    (None, "small_densenet", 0, None),
    ({"backbone": "densenet121"}, "densenet121", 0, None),
    ({"backbone": "densenet121", "hidden": 8}, "densenet121", 8, None),
    ({}, "densenet121", 0, None),  # does not say of what it is
    ({"input": input_facts("efficientnetb0")}, "efficientnetb0", 0, None),
    ({"input": input_facts("convnexttiny")}, "efficientnetb0", 0, "by_variables.* it anew"),
    (None, "densenet121", 0, "is densenet121 with 0 .* of the phantom is of small_densenet"),
    (None, "small_densenet", 8, "is small_densenet with 8 .* of the phantom is of"),
    ({"backbone": "densenet121", "hidden": 8}, "densenet121", 0, r"npz is of .*121 with 8\. M"),
])  # fmt: skip
def test_an_initial_body_must_be_of_the_jobs_network(tmp_path, facts, backbone, hidden, message):
    file = None if facts is None else tmp_path / "body.npz"
    if facts is not None:
        save(Checkpoint({"dense/kernel": np.ones(2)}, facts), file)
    with nullcontext() if message is None else pytest.raises(ValueError, match=message):
        check_network(file, backbone=backbone, hidden=hidden)
    with pytest.raises(ValueError, match="does not exist"):
        check_network(tmp_path / "none.npz", backbone=backbone, hidden=hidden)
