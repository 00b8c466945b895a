import json
from pathlib import Path

import pytest

from cxr_study.jobs import job_folder, job_templates
from cxr_study.jobs.command_line_settings import JobError
from cxr_study.jobs.job_templates import JOBS, METHODS
from surgical_aggregation.aggregation.strategy import STRATEGIES

FOLDERS = Path(__file__).parents[3] / "jobs"


def content(folder):
    return {p.relative_to(folder): p.read_text() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def configure(tmp_path):
    """Write a configured job folder; returns it."""

    def make(method="surgical", *, sites=("a", "b"), settings=None, per_site=None, **options):
        job_templates.configure(
            method,
            tmp_path / "job",
            sites=sites,
            settings=settings or {},
            per_site=per_site or {},
            **options,
        )
        return tmp_path / "job"

    return make


def test_the_folders_in_the_project_are_what_is_written(tmp_path):
    """Where this fails, run `make jobs`."""
    (tmp_path / "surgical").mkdir()
    (tmp_path / "surgical/old.conf").touch()
    (tmp_path / "mine").mkdir()
    job_templates.write_all(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*JOBS, "mine"}
    for job in JOBS:
        assert content(tmp_path / job) == content(FOLDERS / job)
    with pytest.raises(JobError, match="no method 'personal'; nearest known: personalised"):
        job_templates.write("personal", tmp_path / "job")
    assert not (tmp_path / "job").exists()


class TestConfigure:
    def test_sites_and_settings_are_set_over_the_preset(self, configure):
        job = configure(
            preset="paper", settings={"num_rounds": 3}, per_site={"a": {"learning_rate": 2e-5}}
        )
        assert set(job_folder.sites(job)) == {"a", "b"}
        shared, own = job_folder.read_settings(job), job_folder.read_settings(job, "a")
        assert (shared["num_rounds"], shared["backbone"]) == (3, "densenet121")
        assert (shared["learning_rate"], own["learning_rate"]) == (5e-5, 2e-5)

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("strategy", [None, *STRATEGIES])
    def test_every_method_takes_every_strategy_at_server_and_sites(
        self, configure, method, strategy
    ):
        job = configure(method, strategy=strategy)
        for name in (job_folder.SERVER_CONFIG, job_folder.CLIENT_CONFIG):
            text = (job / name).read_text()
            assert f'\nstrategy = "{strategy or METHODS[method].strategy}"' in text
        assert json.loads((job / "meta.json").read_text())["name"] == method

    def test_an_evaluation_has_settings_of_its_own(self, configure):
        job = configure("evaluation", sites=("a",), settings={"model_of": "earlier"})
        assert job_folder.read_settings(job)["model_of"] == "earlier"
        assert json.loads((job / "meta.json").read_text())["name"] == "evaluation"

    @pytest.mark.parametrize(
        ("job", "how", "message"),
        [
            ("surgical", {"strategy": "fedprox"}, "strategy must be one of"),
            ("surgical", {"settings": {"strategy": "fedbm"}}, "strategy must be one of"),
            ("surgical", {"settings": {"union": "X"}}, "job 'surgical' has no setting 'union'"),
            ("evaluation", {"strategy": "fedbn"}, "job 'evaluation' has no setting 'strategy'"),
        ],
    )
    def test_what_the_job_cannot_have_is_refused(self, configure, tmp_path, job, how, message):
        with pytest.raises(ValueError, match=message):
            configure(job, **how)
        assert not (tmp_path / "job").exists()


def test_a_name_is_a_job_of_the_package_for_as_long_as_it_is_open(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with job_templates.opened(Path("surgical")) as job:
        assert job.name == "surgical" and not list(job.glob("*/custom"))
        assert job_folder.read_settings(job) == job_folder.read_settings(FOLDERS / "surgical")
    assert not job.exists()
    with job_templates.opened(FOLDERS / "surgical") as job:  # which stays
        assert job == FOLDERS / "surgical"
    assert job.is_dir()


@pytest.mark.parametrize("job", ["jobs/none", "[red]surgicl", "."])
def test_what_is_neither_a_name_nor_a_folder_is_refused_with_the_nearest(
    tmp_path, monkeypatch, job
):
    monkeypatch.chdir(tmp_path)
    with (
        pytest.raises(JobError, match=r"there is no job .* holds meta\.json, .* surgical"),
        job_templates.opened(Path(job)),
    ):
        pass
