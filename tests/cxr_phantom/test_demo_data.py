import os
import subprocess
import sys

import pytest

from cxr_phantom import demo_data
from cxr_study.data.sites.site_data import load_labels
from cxr_study.data.sites.site_file import read_site_file
from surgical_aggregation.checkpoints.checkpoint import digest, load

ASK = """
from cxr_phantom import demo_data
demo_data.IMAGES_PER_SITE, demo_data.IMAGE_SIZE = 60, 16
print(demo_data.demo_study())
"""


@pytest.fixture(autouse=True)
def small(tmp_path, monkeypatch):
    monkeypatch.setenv("SURGAGG_CACHE", str(tmp_path / "cache"))
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
        asking = [
            subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=env)
            for _ in range(2)
        ]
        said = [process.communicate(timeout=60) for process in asking]
        assert [process.returncode for process in asking] == [0, 0], said
        assert said[0][0] == said[1][0]
        assert sum("writing the phantom" in notice for _, notice in said) == 1


def test_the_pretrained_body_is_what_its_manifest_says_of_the_whole_pretraining():
    body = load(demo_data.PRETRAINED_BODY)
    facts = {name: body.manifest[name] for name in ("backbone", "image_size", "weights", "seed")}
    assert facts == {
        "backbone": "small_densenet", "image_size": 64, "weights": "source pictures", "seed": 0,
    }  # fmt: skip
    assert digest(body.variables) == body.manifest["initial_body_sha256"]
    assert body.manifest["source_accuracy"] > 0.6
