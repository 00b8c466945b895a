import os
import subprocess
import sys

import pytest

from cxr_study.data.sites.site_data import load_labels
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.phantom import demo_data

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


@pytest.fixture
def pretraining(monkeypatch, tmp_path):
    """Put a program in the place of pre-training; it may write the file that it is given."""

    def put(program):
        room = tmp_path / "cxr_study/training"
        room.mkdir(parents=True)
        (room.parent / "__init__.py").touch()
        (room / "__init__.py").touch()
        (room / "pretrain.py").write_text(f"import sys, pathlib\n{program}\n")
        monkeypatch.syspath_prepend(tmp_path)

    return put


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


class TestInitialBody:
    def test_it_is_trained_once_in_a_process_of_its_own(self, pretraining, capfd):
        pretraining("pathlib.Path(sys.argv[1]).write_text('body'); print('epoch 1', flush=True)")
        path = demo_data.embedded_initial_body()
        assert path.read_text() == "body"
        said = capfd.readouterr().err
        assert f"source pictures to {path}" in said and "epoch 1" in said
        assert not demo_data._study().root.exists()  # no phantom is needed
        path.write_text("kept")
        assert demo_data.embedded_initial_body().read_text() == "kept"
        assert capfd.readouterr().err == ""

    def test_failed_training_is_told_with_its_last_lines(self, pretraining):
        pretraining("print('early', *range(9), sep='\\n'); sys.exit('no space left')")
        with pytest.raises(demo_data.EmbeddedStudyError) as error:
            demo_data.embedded_initial_body()
        message = str(error.value)
        assert message.startswith("pre-training the initial body failed (exit code 1);")
        assert "surgagg init" in message and message.endswith("\n8\nno space left")
        assert "early" not in message

    def test_failed_training_leaves_nothing_that_would_pass_for_a_body(self, pretraining):
        pretraining("sys.exit(3)")
        for _ in range(2):
            with pytest.raises(demo_data.EmbeddedStudyError, match="exit code 3"):
                demo_data.embedded_initial_body()
