"""Real trainings: a federated one that goes on in a second job, and others without a federation."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest

from body_statistics import with_statistics
from cxr_study.comparison import outcome
from cxr_study.comparison.grid import ENDINGS, Cell, Setup
from cxr_study.comparison.measures import MEASURES
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES, UNION_CLASSES
from cxr_study.jobs.methods import Row
from cxr_study.phantom.writers.write import write_phantom
from cxr_study.runs.finished_run import checkpoint_folder
from cxr_study.runs.training_process import FAILED
from surgical_aggregation.checkpoints.checkpoint import digest, load, save

SHARED, OWN, OTHER, ALL = MEASURES
PERSONALISED, POOLED = Row("personalised", "fedavg"), Row("centralised", "fedbn+")
SETUP = Setup(
    ("nih", "chexpert"),
    1,
    2,
    1,
    {"backbone": "tiny_densenet", "image_size": 32, "warmup_epochs": 1, "learning_rate": 1e-2},
)


def train(cell, folder):
    """Call the program; its outcome, exit code, what it said, and its folder."""
    folder.mkdir()
    (folder / "cell.json").write_text(json.dumps(cell.to_json()))
    read, write = os.pipe()  # it ends when its standard input does
    try:
        done = subprocess.run(
            [sys.executable, "-m", "cxr_study.comparison.cell",
             *(folder / name for name in ("cell.json", "work", "outcome.json"))],
            stdin=read, capture_output=True, text=True,
        )  # fmt: skip
    finally:
        os.close(read)
        os.close(write)
    return outcome.read(folder / "outcome.json", cell), done, folder / "work"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Row -> what `train` returns; under "missing" one without site files."""
    from cxr_study.training.network import build
    from surgical_aggregation.site.contract.architecture import initial_body

    home = tmp_path_factory.mktemp("cells")
    write_phantom(home / "phantom", images_per_site=150, size=32)
    body = with_statistics(initial_body(build("tiny_densenet", 1, image_size=32)))
    save(body, home / "body.npz")
    cells = {
        row: Cell(row, 3, SETUP, home / "phantom/sites", home / "body.npz")
        for row in (PERSONALISED, POOLED)
    }
    cells["missing"] = dataclasses.replace(cells[POOLED], site_files=home / "nowhere")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SURGAGG_CACHE", str(home / "cache"))
        return {
            key: train(cell, home / str(number)) for number, (key, cell) in enumerate(cells.items())
        }


@pytest.mark.parametrize("row", [PERSONALISED, POOLED])
def test_every_site_is_measured_on_every_class_at_both_endings(trained, row):
    found, done, _ = trained[row]
    assert found is not None, done.stdout + done.stderr
    for ending in found.endings.values():
        assert [(score.site, score.class_name) for score in ending.scores] == [
            (site, name) for site in ("nih", "chexpert") for name in UNION_CLASSES
        ]
        assert {s.class_name for s in ending.scores if s.held and s.site == "nih"} == set(
            NIH_CLASSES
        )
        assert {s.class_name for s in ending.scores if s.shared} == set(NIH_CLASSES) & set(
            CHEXPERT_CLASSES
        )


def test_sites_with_models_of_their_own_have_no_figure_for_what_these_lack(trained):
    found, *_ = trained[PERSONALISED]
    for ending in ENDINGS:
        assert found.auroc(ending, SHARED) is not None and found.auroc(ending, OWN) is not None
        assert found.auroc(ending, OTHER) is None and found.auroc(ending, ALL) is None
        assert len(set(found.endings[ending].digests.values())) == 2


def test_a_global_model_has_all_figures(trained):
    found, *_ = trained[POOLED]
    for ending in ENDINGS:
        assert all(0 < found.auroc(ending, measure) < 1 for measure in MEASURES)
        assert len(set(found.endings[ending].digests.values())) == 1


@pytest.mark.parametrize("row", [PERSONALISED, POOLED])
def test_equal_rounds_are_those_of_the_setup_and_early_stopping_goes_on(trained, row):
    found, done, _ = trained[row]
    equal, early = (found.endings[ending] for ending in ENDINGS)
    assert (equal.round, equal.rounds, early.rounds) == (1, 1, 2)
    assert early.round in (1, 2)
    assert "round 1\n" in done.stdout and "round 2\n" in done.stdout


def test_the_second_job_goes_on_with_the_sites_states(trained):
    _, _, work = trained[PERSONALISED]
    log = (work / "more/workspace-simulator.log").read_text()
    for site in ("nih", "chexpert"):
        assert f"{site}: goes on with this site's state after 1 rounds" in log
    manifest = load(checkpoint_folder(work / "more/workspace") / "last.npz").manifest
    assert (manifest["round"], manifest["history"][0]["rounds"]) == (2, [0, 1])


def test_the_models_that_are_measured_are_those_on_disk(trained):
    found, _, work = trained[PERSONALISED]
    for site in ("nih", "chexpert"):
        folder = checkpoint_folder(work / "first/workspace", site)
        model = load(folder / "site_last.npz")
        assert found.endings[ENDINGS[0]].digests[site] == digest(model.variables)


def test_a_failure_is_one_line_and_leaves_no_outcome(trained):
    found, done, _ = trained["missing"]
    assert (found, done.returncode, done.stderr) == (None, 1, "")
    assert done.stdout.startswith(FAILED) and "nowhere/nih.yaml does not exist" in done.stdout
    assert done.stdout.count("\n") == 1
