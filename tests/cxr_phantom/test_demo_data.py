import os
import subprocess
import sys
from pathlib import Path

import pytest
from nvflare.apis.fl_constant import ReservedKey

from cxr_phantom import demo_data
from cxr_study.data.sites.site_data import load_labels
from cxr_study.data.sites.site_file import read_site_file
from flare import context
from surgical_aggregation.checkpoints.checkpoint import CheckpointError, digest, load
from surgical_aggregation.server.models.model_files import InitialBody
from surgical_aggregation.wire.headers import SIMULATED_JOB

ASK = """
from cxr_phantom import demo_data
demo_data.IMAGES_PER_SITE, demo_data.IMAGE_SIZE = 60, 16
print(demo_data.demo_study())
"""


@pytest.fixture(autouse=True)
def small(cache, monkeypatch):
    monkeypatch.setattr(demo_data, "IMAGES_PER_SITE", 60)
    monkeypatch.setattr(demo_data, "IMAGE_SIZE", 16)


class TestStudy:
    def test_both_sites_can_be_read_and_are_written_once(self, capsys, tmp_path):
        study = demo_data.demo_study()
        assert study.parents[1] == tmp_path / "cache"
        assert f"writing the phantom study to {study.parent}" in capsys.readouterr().err
        for site in ("nih", "chexpert"):
            assert len(load_labels(read_site_file(study / f"{site}.yaml")).table) == 60
        written = (study / "nih.yaml").stat().st_mtime_ns
        other = demo_data.demo_study(seed=1)  # draws other patients and leaves the first alone
        capsys.readouterr()
        assert demo_data.demo_study(seed=demo_data.SEED) == study
        assert capsys.readouterr().err == ""
        assert (study / "nih.yaml").stat().st_mtime_ns == written
        texts = [(folder.parent / "truth/nih.csv").read_text() for folder in (study, other)]
        assert texts[0] != texts[1]

    def test_two_processes_that_ask_at_once_get_one_study(self, tmp_path):
        command, pipe = [sys.executable, "-c", ASK], subprocess.PIPE
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        how = {"stdout": pipe, "stderr": pipe, "text": True, "env": env}
        asking = [subprocess.Popen(command, **how) for _ in range(2)]
        output = [process.communicate(timeout=300) for process in asking]
        assert [process.returncode for process in asking] == [0, 0], output
        assert output[0][0] == output[1][0]
        assert sum("writing the phantom" in notice for _, notice in output) == 1


def test_the_pretrained_body_is_what_its_manifest_says_of_the_whole_pretraining():
    body = load(demo_data.PRETRAINED_BODY)
    facts = {"backbone": "small_densenet", "image_size": 64, "weights": "source pictures"}
    assert body.manifest == {**body.manifest, **facts, "seed": 0}
    assert digest(body.variables) == body.manifest["initial_body_sha256"]
    assert body.manifest["source_accuracy"] > 0.6


def test_real_images_start_from_drawings_only_where_that_is_asked_for(monkeypatch):
    simulated, deployed = context(), context()
    simulated.set_prop(ReservedKey.RUN_NUM, SIMULATED_JOB, private=False, sticky=False)
    monkeypatch.delenv("CXR_SITES", raising=False)
    assert InitialBody("own.npz").path(simulated) == Path("own.npz")
    monkeypatch.setenv("CXR_INITIAL_BODY", "own.npz")
    assert InitialBody("own.npz").path(deployed) == Path("own.npz")
    assert InitialBody("drawings").path(deployed) == demo_data.PRETRAINED_BODY
    for nothing in (None, ""):  # FLARE gives "" for a variable that is not set
        assert InitialBody(nothing).path(simulated) == demo_data.PRETRAINED_BODY
        with pytest.raises(CheckpointError, match="needs an initial body; none is configured"):
            InitialBody(nothing).path(deployed)
    monkeypatch.setenv("CXR_SITES", "/data/sites")
    with pytest.raises(CheckpointError, match="name of a body that an installed package offers"):
        InitialBody(None).path(simulated)
