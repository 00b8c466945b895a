"""The folders in jobs/ are what the recipe exports; code comes in the way that is asked for."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cxr_study.data.labels.vocabulary import UNION_CLASSES
from cxr_study.jobs.components import CODE_MODES, MARKER, PACKAGES, PATHS
from cxr_study.jobs.job import Job
from cxr_study.jobs.job_export import write, write_all
from cxr_study.jobs.methods import JOBS, METHODS
from cxr_study.jobs.presets import JobError
from tiny_job import JOBS as FOLDERS
from tiny_job import walk


def content(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_folders_in_the_project_are_what_is_written(tmp_path):
    """Where this fails, run `make jobs`."""
    for name in ("surgical/old.json", "mine/meta.json"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    write_all(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*JOBS, "mine"}
    assert [job for job in JOBS if content(tmp_path / job) != content(FOLDERS / job)] == []


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The surgical job, by way."""
    folder = tmp_path_factory.mktemp("jobs")
    for way in CODE_MODES:
        write(Job.of("surgical"), folder / way, way)
    return folder


@pytest.mark.parametrize("app", ["app_server", "app_client"])
def test_each_way_brings_what_it_needs_with_the_same_configuration(written, app):
    installed, marked, carried = (content(written / way / app) for way in CODE_MODES)
    assert [path.parts[0] for path in installed] == ["config"]
    assert marked == {**installed, Path("custom", MARKER.name): MARKER.read_bytes()}
    for name in PACKAGES[:2]:
        own = content(Path(sys.modules[name].__file__).parent)
        own = {Path("custom", name, path): of for path, of in own.items() if path.suffix == ".py"}
        assert own.items() <= carried.items()
    assert installed.items() <= carried.items()
    assert not [path for path in carried if path.suffix == ".pyc"]
    assert {path.parts[1] for path in carried if path.parts[0] == "custom"} == {*PACKAGES}


def test_code_that_the_job_carries_runs_where_the_packages_are_not_installed(written):
    custom = written / "carried" / "app_server" / "custom"
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import surgical_aggregation.server.models.persistor, cxr_phantom\n"
        "import cxr_study, cxr_study.data.labels.vocabulary as v\n"
        "print(surgical_aggregation.__file__, cxr_study.__file__, len(v.UNION_CLASSES))\n"
    )
    said = subprocess.check_output([sys.executable, "-I", "-c", script, custom], text=True)
    assert said.split() == [*(str(custom / p / "__init__.py") for p in PACKAGES[:2]), "20"]


@pytest.mark.parametrize("way", CODE_MODES)
def test_a_copy_has_the_folders_code_but_no_unneeded_marker(written, tmp_path, way):
    write(Job.of(written / way), tmp_path / "copy")
    same = written / ("installed" if way == "marked" else way)
    copied, own = content(tmp_path / "copy"), content(same)
    assert copied.keys() == own.keys()
    assert all(copied[path] == own[path] for path in own if "custom" in path.parts)


def test_a_job_that_names_classes_of_others_stays_marked(written, tmp_path):
    job = shutil.copytree(written / "marked", tmp_path / "job")
    config = job / "app_client/config/config_fed_client.json"
    site = "cxr_study.training.chest_xray_site.ChestXraySite"
    config.write_text(config.read_text().replace(site, "my_hospital.MySite"))
    write(Job.of(job), tmp_path / "copy")
    assert len(list((tmp_path / "copy").glob("*/custom/README.txt"))) == 2


def test_another_way_or_a_folder_that_exists_is_refused(tmp_path):
    with pytest.raises(JobError, match="code must be one of installed, marked, carried; got 'pip'"):
        write(Job.of("surgical"), tmp_path / "job", "pip")
    assert not (tmp_path / "job").exists()
    for job in ("surgical", FOLDERS / "surgical"):
        with pytest.raises(JobError, match="exists"):
            write(Job.of(job), tmp_path)


def sides(job):
    """The configurations of the server and of the sites of a folder of the project."""
    made = Job.of(FOLDERS / job).folder
    return made.server, made.clients["app_client"]


@pytest.mark.parametrize("job", JOBS)
def test_a_folder_names_three_variables_at_most_two_apps_and_no_class_of_a_site(job):
    places = {"$CXR_SITES", "$CXR_INITIAL_BODY", "$CXR_MODEL"}
    assert {*re.findall(r"\{(\$\w+)\}", json.dumps(sides(job)))} <= places
    deploy_map = json.loads((FOLDERS / job / "meta.json").read_text())["deploy_map"]
    assert deploy_map == {"app_server": ["server"], "app_client": ["nih", "chexpert"]}
    text = json.dumps(sides(job)[1]).lower()
    assert not [name for name in UNION_CLASSES if name.lower() in text]
    assert "fed_event" not in text  # events would come under the name that the site gives itself
    assert f"`{job}`" in (FOLDERS.parent / "docs/reference/jobs.md").read_text(encoding="utf-8")


HEAVY = {"joblib", "keras", "matplotlib", "pydicom", "scipy", "sklearn", "tensorflow"}
SERVER, SITE = (
    ", ".join(sorted({node["path"].rpartition(".")[0] for node in walk(side) if "path" in node}))
    for side in sides("surgical")
)


@pytest.mark.parametrize(("imports", "spared"), [
    (SERVER, HEAVY | {"pandas", "PIL", "rich"}), (SITE, HEAVY), ("cxr_phantom.pretrain", HEAVY),
    ("cxr_studies.runner.one_run", HEAVY),
], ids=["server", "site", "pretraining", "a study's run"])  # fmt: skip
def test_a_process_starts_without_what_it_may_not_need(imports, spared):
    program = f"import sys, {imports}\nprint(*{spared} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).split() == []


@pytest.mark.parametrize("job", [*METHODS, "evaluation"])  # a census has no model
def test_every_task_with_a_model_passes_the_gate_and_its_metrics_are_kept(job):
    server, client = sides(job)
    gate, filters = PATHS["SelectHead"], server["task_data_filters"]
    gated = {t for each in filters if each["filters"][0]["path"] == gate for t in each["tasks"]}
    tasks = {task for entry in client["executors"] for task in entry["tasks"]}
    assert tasks - gated == {"check"} and gated < tasks
    (tracker,) = [node for node in walk(server) if node.get("path") == PATHS["Tracking"]]
    assert tracker["args"] == {"tracking": "{tracking}"}
