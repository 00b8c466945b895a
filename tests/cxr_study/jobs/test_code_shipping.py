"""How a job's code gets to the places that run it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cxr_study.jobs import code_shipping, fed_job, job_templates
from cxr_study.jobs.code_shipping import MARKER, PACKAGES, WAYS
from cxr_study.jobs.command_line_settings import JobError

ROOT = Path(__file__).parents[3]
SOURCES = {"surgical_aggregation": ROOT / "components", "cxr_study": ROOT / "custom"}
GUARD = "surgical_aggregation.byoc_check.CarriedCode"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The surgical job, by way."""
    folder = tmp_path_factory.mktemp("jobs")
    for way in WAYS:
        job_templates.write("surgical", folder / way, way)
    return folder


def brought(job, app):
    """Files in an app's custom/, by path."""
    custom = job / app / "custom"
    return {p.relative_to(custom).as_posix(): p for p in custom.rglob("*") if p.is_file()}


@pytest.mark.parametrize("app", ["app_server", "app_client"])
class TestFiles:
    def test_a_job_of_installed_code_is_configuration_alone(self, written, app):
        assert sorted(p.name for p in (written / "installed" / app).iterdir()) == ["config"]

    def test_a_marked_job_brings_one_file_that_says_why(self, written, app):
        (file,) = brought(written / "marked", app).values()
        assert file.read_text() == MARKER.read_text()

    def test_a_job_that_carries_brings_every_file_of_both_packages_as_it_is(self, written, app):
        files = brought(written / "byoc", app)
        ours = {
            path.relative_to(SOURCES[package]).as_posix(): path
            for package in PACKAGES
            for path in (SOURCES[package] / package).rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        }
        assert files.keys() == ours.keys()
        assert all(files[name].read_bytes() == ours[name].read_bytes() for name in ours)


def test_a_marked_job_is_one_of_installed_code_once_the_marker_is_out(written, tmp_path):
    for way in WAYS:
        shutil.copytree(written / way, tmp_path / way)
        code_shipping.unmark(tmp_path / way)
    files = {
        way: {p.relative_to(tmp_path / way) for p in (tmp_path / way).rglob("*")} for way in WAYS
    }
    assert files["marked"] == files["installed"]
    assert len(files["byoc"]) == len([*(written / "byoc").rglob("*")])
    code_shipping.mark(tmp_path / "installed")
    for way in ("installed", "byoc"):
        code_shipping.mark(tmp_path / way)
    marked = sorted(p.relative_to(written / "marked") for p in (written / "marked").rglob("*"))
    made = tmp_path / "installed"
    assert sorted(p.relative_to(made) for p in made.rglob("*")) == marked
    assert len(files["byoc"]) == len([*(tmp_path / "byoc").rglob("*")])


def test_a_job_that_names_classes_of_others_stays_marked(written, tmp_path):
    job = shutil.copytree(written / "marked", tmp_path / "job")
    config = job / job_templates.CLIENT_CONFIG
    site = "cxr_study.training.chest_xray_site.ChestXraySite"
    config.write_text(config.read_text().replace(site, "my_hospital.MySite"))
    code_shipping.unmark(job)
    assert len(list(job.glob("*/custom/README.txt"))) == 2


def test_carried_code_runs_where_the_packages_are_not_installed(written):
    custom = written / "byoc" / "app_server" / "custom"
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import surgical_aggregation.server.models.persistor, cxr_study.training.default_body\n"
        "import cxr_study.data.labels.vocabulary as v\n"
        "print(surgical_aggregation.__file__, cxr_study.__file__, len(v.UNION_CLASSES))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script, custom], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [*(str(custom / p / "__init__.py") for p in PACKAGES), "20"]


@pytest.mark.parametrize("method", job_templates.JOBS)
class TestGuard:
    def test_stands_ahead_of_all_that_works_on_a_task(self, tmp_path, method):
        job_templates.write(method, tmp_path / "job", "byoc")
        configuration = fed_job.read(tmp_path / "job")
        (client,) = configuration.clients.values()
        (chain,) = client["task_data_filters"]
        (executor,) = client["executors"]
        assert set(chain["tasks"]) == set(executor["tasks"])
        first = chain["filters"][0]
        assert first == {"path": GUARD, "args": {"packages": list(PACKAGES)}}
        assert configuration.server["components"][0]["path"] == GUARD
        assert configuration.server["components"][0]["args"]["ends_run"] is True

    def test_a_job_that_carries_nothing_has_none_and_is_otherwise_the_same(self, tmp_path, method):
        for way in WAYS:
            job_templates.write(method, tmp_path / way, way)
        for file in (job_templates.SERVER_CONFIG, job_templates.CLIENT_CONFIG):
            texts = {way: (tmp_path / way / file).read_text() for way in WAYS}
            assert texts["installed"] == texts["marked"]
            assert GUARD in texts["byoc"] and GUARD not in texts["marked"]


def test_another_way_is_refused(tmp_path):
    with pytest.raises(JobError, match="code must be one of installed, marked, byoc; got 'pip'"):
        job_templates.write("surgical", tmp_path / "job", "pip")
    assert not (tmp_path / "job").exists()
