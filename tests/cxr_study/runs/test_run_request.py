"""What is refused before anything is made or removed."""

import shutil
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cxr_phantom.demo_data import PRETRAINED_BODY
from cxr_study.jobs.job import SITE, Job
from cxr_study.jobs.presets import JobError
from cxr_study.runs import run_request
from cxr_study.runs.finished_run import RunFolderError, checkpoint_folder
from cxr_study.runs.run_request import InitialBodyError, RunRequest, check, check_network
from cxr_study.training.network import input_facts
from surgical_aggregation.aggregation.batch_norm_strategy import StrategyError
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save
from tiny_job import JOBS


@pytest.fixture
def request_of(tmp_path):
    values = {"folder": tmp_path / "run", "site_files": None, "initial_body": None}

    def make(job="surgical", settings=None, sites=None, **changes):
        asked = Job.of(job).with_settings(settings or {}, sites=sites)
        return RunRequest(asked, **{**values, **changes})

    return make


@pytest.mark.parametrize(("changes", "kind", "message"), [
    ({"job": "census"}, JobError, "trains nothing, .* run its folder with nvflare sim"),
    ({"job": "surgical_he"}, JobError, "are encrypted.*`surgagg model decrypt`"),
    ({"settings": {"hidden": 8}}, InitialBodyError, "is small_densenet with 8 .* of the phantom"),
    ({"job": "personalised", "published": True}, JobError, "--published needs one of"),
    ({"folder": Path("/my run")}, RunFolderError, "without spaces in its path; got '/my run'"),
])  # fmt: skip
def test_what_cannot_be_run_is_refused(request_of, changes, kind, message):
    check(request_of(local_models=True, published=True))
    with pytest.raises(kind, match=message):
        check(request_of(**changes))


@pytest.mark.parametrize(("name", "value", "option"), [
    ("sites", "phantom", "--site-files or --phantom"),
    ("sites", "/data/other", "--site-files or --phantom"),
    ("initial_body", "drawings", "--initial-body"),
    ("initial_body", "/data/own.npz", "--initial-body"),
    ("continues", "0043d777", "surgagg continue"), ("check_only", True, "surgagg deploy check"),
])  # fmt: skip
def test_no_setting_wins_over_its_option(request_of, tmp_path, monkeypatch, name, value, option):
    monkeypatch.setattr(run_request, "check_sites", lambda site_files, sites: None)
    refused = pytest.raises(JobError, match=f"{option}.* replaces setting '{name}'; got {value!r}")
    with refused:
        check(request_of(settings={name: value}, site_files=tmp_path, initial_body=PRETRAINED_BODY))
    with nullcontext() if value in ("phantom", "drawings") else refused:
        check(request_of(settings={name: value}))
    if name == "sites":
        job = Job.of("surgical").with_settings({}, {"nih": {name: value}})
        with refused:
            check(replace(request_of(initial_body=PRETRAINED_BODY, site_files=tmp_path), job=job))


def test_what_the_published_method_could_not_start_from_is_refused_first(request_of, tmp_path):
    values = {"gamma": 1, "beta": 0, "moving_mean": 0, "moving_variance": 1}
    random = {f"bn/{name}": np.full(2, value, np.float32) for name, value in values.items()}
    save(Checkpoint(random, {"head_features": 2}), tmp_path / "random.npz")
    wish = {"initial_body": tmp_path / "random.npz", "settings": {"strategy": "fedavg"}}
    check(request_of(**wish))
    with pytest.raises(StrategyError, match="freezes the initial body's batch normalisation"):
        check(request_of(**wish, published=True))


def test_a_job_with_sites_of_ones_own_is_left_to_flare(request_of, tmp_path):
    job = shutil.copytree(JOBS / "surgical", tmp_path / "job")
    client = job / "app_client/config/config_fed_client.json"
    client.write_text(client.read_text().replace(SITE, "my.module.MySite"))
    with pytest.raises(JobError, match=r"nvflare simulator <folder> .* then surgagg report <works"):
        check(request_of(job=job))


def test_a_run_to_continue_needs_a_model_and_for_a_site_alone_one_of_its_own(request_of, tmp_path):
    study = request_of(earlier=tmp_path / "earlier")
    last = checkpoint_folder(tmp_path / "earlier/workspace") / "last.npz"
    with pytest.raises(RunFolderError, match=r"earlier/workspace.*last\.npz, which does not exist"):
        check(study)
    last.parent.mkdir(parents=True)
    last.touch()
    check(study)
    with pytest.raises(RunFolderError, match=r"earlier/local/nih/.*last\.npz, which does not ex"):
        check(replace(study, local_models=True))


def test_real_images_start_from_drawings_only_where_asked_for(request_of, tmp_path, monkeypatch):
    monkeypatch.setattr(run_request, "check_sites", lambda site_files, sites: None)
    with pytest.raises(JobError, match=r"needs --initial-body: a checkpoint .* or 'drawings'"):
        check(request_of(site_files=tmp_path))
    check(request_of(site_files=tmp_path, initial_body=PRETRAINED_BODY))


def test_a_disk_on_which_the_models_would_not_fit_is_refused(request_of, tmp_path, monkeypatch):
    body = tmp_path / "body.npz"
    save(Checkpoint({"x": np.zeros(2**18, np.float32)}, {}), body)
    # Logs, and five models at the server and two sites.
    free = SimpleNamespace(free=64 * 2**20 + 15 * body.stat().st_size)
    monkeypatch.setattr(run_request.shutil, "disk_usage", lambda folder: free)
    check(request_of(initial_body=body))
    free.free -= 1
    with pytest.raises(RunFolderError, match=r"needs about 79 MiB .* has 79\. Make room"):
        check(request_of(initial_body=body))


@pytest.mark.parametrize(("facts", "backbone", "hidden", "message"), [
    (None, "small_densenet", 0, None), ({"backbone": "densenet121"}, "densenet121", 0, None),
    ({"backbone": "densenet121", "hidden": 8}, "densenet121", 8, None),
    ({}, "densenet121", 0, None),  # does not say of what it is
    ({"input": input_facts("efficientnetb0")}, "efficientnetb0", 0, None),
    ({"input": input_facts("convnexttiny")}, "efficientnetb0", 0, "by_variables.*Recreate it"),
    (None, "densenet121", 0, "is densenet121 with 0 .* of the phantom is of small_densenet"),
    (None, "small_densenet", 8, "is small_densenet with 8 .* of the phantom is of"),
    ({"backbone": "densenet121", "hidden": 8}, "densenet121", 0, r"npz is of .*121 with 8\. M"),
])  # fmt: skip
def test_an_initial_body_must_be_of_the_jobs_network(tmp_path, facts, backbone, hidden, message):
    file = None if facts is None else tmp_path / "body.npz"
    if facts is not None:
        save(Checkpoint({"dense/kernel": np.ones(2)}, facts), file)
    with nullcontext() if message is None else pytest.raises(ValueError, match=message):
        check_network(file, backbone, hidden)
    with pytest.raises(ValueError, match="does not exist"):
        check_network(tmp_path / "none.npz", backbone, hidden)
