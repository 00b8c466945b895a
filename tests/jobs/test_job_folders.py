"""What the job folders say; that it is the recipe's, and can be built: tests/cxr_study/jobs."""

import json
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest

from cxr_study.data.labels.vocabulary import UNION_CLASSES
from cxr_study.jobs.methods import METHODS
from tiny_job import walk

JOBS = Path(__file__).parents[2] / "jobs"
NAMES = tuple(f"app_{side}/config/config_fed_{side}.json" for side in ("server", "client"))
CONFIGS = [(job.name, name) for job in sorted(JOBS.iterdir()) if job.is_dir() for name in NAMES]


@lru_cache
def parsed(job, name):
    return json.loads((JOBS / job / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize(("job", "name"), CONFIGS)
def test_it_refers_to_three_variables_of_the_environment_at_most(job, name):
    places = {"$CXR_SITES", "$CXR_INITIAL_BODY", "$CXR_MODEL"}
    assert {*re.findall(r"\{(\$\w+)\}", (JOBS / job / name).read_text())} <= places


HEAVY = {"joblib", "keras", "matplotlib", "pydicom", "scipy", "sklearn", "tensorflow"}


@pytest.mark.parametrize(
    ("name", "spared"),
    [
        (NAMES[0], HEAVY | {"pandas", "PIL", "rich"}),
        (NAMES[1], HEAVY),
    ],
)
def test_the_surgical_job_starts_without_what_it_does_not_need(name, spared):
    paths = [node["path"] for node in walk(parsed("surgical", name)) if "path" in node]
    imports = ", ".join(sorted({path.rpartition(".")[0] for path in paths}))
    program = f"import sys, {imports}\nprint(*{spared} & set(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.split() == []


@pytest.mark.parametrize("job", sorted({job for job, _ in CONFIGS}))
def test_server_and_sites_get_different_apps_and_no_class_is_named(job):
    deploy_map = json.loads((JOBS / job / "meta.json").read_text())["deploy_map"]
    assert deploy_map == {"app_server": ["server"], "app_client": ["nih", "chexpert"]}
    text = (JOBS / job / NAMES[1]).read_text().lower()
    assert not [name for name in UNION_CLASSES if name.lower() in text]
    assert f"`{job}`" in (JOBS / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("job", [*METHODS, "evaluation"])  # a census has no model
def test_every_task_with_a_model_passes_the_gate_and_its_metrics_are_kept(job):
    server, client = (parsed(job, name) for name in NAMES)
    gate = "surgical_aggregation.server.access.class_filters.SelectHead"
    chains = [e for e in server["task_data_filters"] if e["filters"][0]["path"] == gate]
    gated = {task for entry in chains for task in entry["tasks"]}
    tasks = {task for entry in client["executors"] for task in entry["tasks"]}
    assert tasks - gated == {"check"} and gated < tasks
    tracking = "surgical_aggregation.server.records.tracking.Tracking"
    (tracker,) = [node for node in walk(server) if node.get("path", None) == tracking]
    assert tracker["args"] == {"tracking": "{tracking}"}
    # Events would come under the name that the site gives itself.
    assert "fed_event" not in (JOBS / job / NAMES[1]).read_text(encoding="utf-8")
