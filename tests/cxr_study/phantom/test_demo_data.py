import os
import subprocess
import sys

import pytest

from cxr_study.data.sites.site_data import load_labels
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.phantom import demo_data
from surgical_aggregation.checkpoints.checkpoint import digest, load

ASK = """
from cxr_study.phantom import demo_data
demo_data.IMAGES_PER_SITE, demo_data.IMAGE_SIZE = 60, 16
print(demo_data.embedded_study().sites)
"""


@pytest.fixture(autouse=True)
def small(tmp_path, monkeypatch):
    monkeypatch.setenv("SURGAGG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(demo_data, "IMAGES_PER_SITE", 60)
    monkeypatch.setattr(demo_data, "IMAGE_SIZE", 16)


class TestStudy:
    def test_both_sites_can_be_read(self):
        study = demo_data.embedded_study()
        tables = [
            load_labels(read_site_file(study.sites / f"{site}.yaml")).table
            for site in ("nih", "chexpert")
        ]
        assert [len(table) for table in tables] == [60, 60]

    def test_it_is_written_once_and_says_where(self, capsys, tmp_path):
        study = demo_data.embedded_study()
        assert study.root.parent == tmp_path / "cache"
        assert f"writing the phantom study to {study.root}" in capsys.readouterr().err
        written = (study.sites / "nih.yaml").stat().st_mtime_ns
        assert demo_data.embedded_study() == study
        assert capsys.readouterr().err == ""
        assert (study.sites / "nih.yaml").stat().st_mtime_ns == written

    def test_another_seed_draws_other_patients_and_leaves_the_first_study_alone(self):
        studies = [demo_data.embedded_study(), demo_data.embedded_study(seed=1)]
        texts = [(study.root / "truth/nih.csv").read_text() for study in studies]
        assert texts[0] != texts[1]
        assert studies[0] == demo_data.embedded_study(seed=demo_data.SEED)

    def test_two_processes_that_ask_at_once_get_one_study(self, tmp_path):
        asking = [
            subprocess.Popen(
                [sys.executable, "-c", ASK],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
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
