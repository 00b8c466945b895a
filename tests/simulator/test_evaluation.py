"""The evaluation job in FLARE's simulator: what it measures, what it tells whom."""

from types import SimpleNamespace

import pytest

import plain_simulator
import tiny_job
from cxr_study.reports.run.federated_evaluation import read
from cxr_study.runs.finished_run import server_folder
from cxr_study.runs.results import read_events
from secrecy import forms
from tiny_run import SITES

UNION = {name for site in SITES.values() for name in site["classes"]}
STRANGER = {"east": {"classes": ["Edema", "Hernia"], "images": 20}}  # Hernia: nobody taught it


def evaluate(folder, sites, model, **settings):
    """Evaluate a model on the tiny study; what the job left."""
    job = tiny_job.make(folder, sites, job="evaluation", settings=settings)
    (folder / "received").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CXR_MODEL", str(model))
        patch.setenv("CAPTURE_FOLDER", str(folder / "received"))
        log = plain_simulator.run(job, folder / "workspace", list(sites))
    return SimpleNamespace(
        folder=folder,
        workspace=folder / "workspace",
        server=server_folder(folder / "workspace"),
        record=read_events(server_folder(folder / "workspace")),
        log=log.read_text(encoding="utf-8"),
    )


@pytest.fixture(scope="module")
def evaluated(runs, tmp_path_factory):
    model = runs.first.server / "models/best.npz"
    folder = tmp_path_factory.mktemp("evaluation")
    return evaluate(folder, {**SITES, **STRANGER}, model, report_counts=True)


def test_every_site_measures_what_it_did_in_the_training_job_bit_for_bit(runs, evaluated):
    def measured(server):
        rows = read(server)
        return {(r.class_name, r.site): (r.auroc, r.bce) for r in rows if r.site in SITES}

    trained = measured(runs.first.server)
    assert measured(evaluated.server) == trained
    assert set(trained) == {(name, site) for site in SITES for name in SITES[site]["classes"]}


def test_a_site_that_took_no_part_in_training_measures_the_classes_that_were_taught(evaluated):
    assert [row.class_name for row in read(evaluated.server) if row.site == "east"] == ["Edema"]


def test_counts_travel_where_they_are_asked_for(runs, evaluated):
    images = {**SITES, **STRANGER}
    for row in read(evaluated.server):
        assert row.positives + row.negatives == images[row.site]["images"]
    assert all(row.positives is None for row in read(runs.first.server))


def test_nothing_is_trained(evaluated):
    assert [event["event"] for event in evaluated.record] == ["started", "ended"]
    assert not list(evaluated.workspace.rglob("*.npz"))


@pytest.mark.parametrize("site", [*SITES, *STRANGER])
def test_no_site_receives_the_name_or_a_column_of_a_class_that_it_does_not_hold(evaluated, site):
    received = (evaluated.folder / "received" / site).read_bytes().lower()
    own = {**SITES, **STRANGER}[site]["classes"]
    assert all(any(form in received for form in forms(name)) for name in UNION & {*own})
    for name in (UNION | {"Hernia"}) - {*own}:
        assert not any(form in received for form in forms(name)), name


def test_the_servers_log_says_how_the_model_did_at_every_site(evaluated):
    assert "test split of east: mean AUROC" in evaluated.log
    assert "over 1 of its 1 classes, 20 images" in evaluated.log
    assert "best model" not in evaluated.log
