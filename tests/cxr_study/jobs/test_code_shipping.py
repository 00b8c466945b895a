"""How a job's code gets to the server and the sites."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cxr_study.jobs import code_shipping, job_templates
from cxr_study.jobs.code_shipping import MARKER, PACKAGES, WAYS
from cxr_study.jobs.command_line_settings import JobError

ROOT = Path(__file__).parents[3]
SOURCES = {name: ROOT / "custom" for name in PACKAGES} | {
    "surgical_aggregation": ROOT / "components"
}


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
def test_each_way_brings_what_it_needs(written, app):
    assert sorted(p.name for p in (written / "installed" / app).iterdir()) == ["config"]
    (marker,) = brought(written / "marked", app).values()
    assert marker.read_text() == MARKER.read_text()
    files = brought(written / "byoc", app)
    ours = {
        path.relative_to(SOURCES[package]).as_posix(): path
        for package in PACKAGES
        for path in (SOURCES[package] / package).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert files.keys() == ours.keys()
    assert all(files[name].read_bytes() == ours[name].read_bytes() for name in ours)


@pytest.mark.parametrize(
    ("change", "made"),
    [
        (code_shipping.unmark, {"marked": "installed", "byoc": "byoc"}),
        (code_shipping.mark, {"installed": "marked", "byoc": "byoc", "marked": "marked"}),
    ],
)
def test_a_job_that_brings_no_code_can_be_marked_and_unmarked(written, tmp_path, change, made):
    def files(job):
        return {path.relative_to(job) for path in job.rglob("*")}

    for way, other in made.items():
        job = shutil.copytree(written / way, tmp_path / way)
        change(job)
        assert files(job) == files(written / other)


def test_a_job_that_names_classes_of_others_stays_marked(written, tmp_path):
    job = shutil.copytree(written / "marked", tmp_path / "job")
    config = job / job_templates.CLIENT_CONFIG
    site = "cxr_study.training.chest_xray_site.ChestXraySite"
    config.write_text(config.read_text().replace(site, "my_hospital.MySite"))
    code_shipping.unmark(job)
    assert len(list(job.glob("*/custom/README.txt"))) == 2


def test_code_that_the_job_brings_runs_where_the_packages_are_not_installed(written):
    custom = written / "byoc" / "app_server" / "custom"
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import surgical_aggregation.server.models.persistor, cxr_phantom\n"
        "import cxr_study, cxr_study.data.labels.vocabulary as v\n"
        "print(surgical_aggregation.__file__, cxr_study.__file__, len(v.UNION_CLASSES))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script, custom], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [*(str(custom / p / "__init__.py") for p in PACKAGES[:2]), "20"]


@pytest.mark.parametrize("method", job_templates.JOBS)
def test_the_configuration_is_the_same_whatever_the_way(tmp_path, method):
    for way in WAYS:
        job_templates.write(method, tmp_path / way, way)
    for file in (job_templates.SERVER_CONFIG, job_templates.CLIENT_CONFIG):
        assert len({(tmp_path / way / file).read_text() for way in WAYS}) == 1


def test_another_way_is_refused(tmp_path):
    with pytest.raises(JobError, match="code must be one of installed, marked, byoc; got 'pip'"):
        job_templates.write("surgical", tmp_path / "job", "pip")
    assert not (tmp_path / "job").exists()
