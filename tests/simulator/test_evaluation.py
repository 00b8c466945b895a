"""The evaluation job in FLARE's simulator: what it measures, and what each site learns."""

import pytest

import tiny_job
from cxr_study.reports.run.cross_site_results import read
from secrecy import names
from simulated import SITES, UNION, plain

ALL = {**SITES, "east": {"classes": ["Edema", "Hernia"], "images": 20}}  # nobody trained Hernia


@pytest.fixture(scope="module")
def evaluated(runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluation")
    job = tiny_job.make(folder, ALL, job="evaluation", settings={"report_counts": True})
    return plain(job, folder, ALL, CXR_MODEL=str(runs.first.server / "models/best.npz"))


def test_every_site_measures_what_it_did_in_the_training_job_bit_for_bit(runs, evaluated):
    trained, again = (
        {(r.class_name, r.site): (r.auroc, r.bce) for r in read(run.server) if r.site in SITES}
        for run in (runs.first, evaluated)
    )
    assert again == trained
    assert set(trained) == {(name, site) for site in SITES for name in SITES[site]["classes"]}
    for row in read(evaluated.server):  # counts travel where they are asked for
        assert row.positives + row.negatives == ALL[row.site]["images"]
    assert all(row.positives is None for row in read(runs.first.server))
    assert [event["event"] for event in evaluated.record] == ["started", "ended"]
    assert not list(evaluated.workspace.rglob("*.npz"))


def test_a_site_that_took_no_part_in_training_measures_the_trained_classes(evaluated):
    assert [row.class_name for row in read(evaluated.server) if row.site == "east"] == ["Edema"]
    log = (evaluated.folder / "workspace.log").read_text(encoding="utf-8")
    assert "test split of east: mean AUROC" in log
    assert "over 1 of its 1 classes, 20 images" in log
    assert "best model" not in log


@pytest.mark.parametrize("site", ALL)
def test_no_site_receives_the_name_or_a_column_of_a_class_that_it_does_not_label(evaluated, site):
    labelled, received = set(ALL[site]["classes"]), evaluated.received(site)
    found = {name for name in [*UNION, "Hernia"] if names(received, name)}
    assert found - {"Hernia"} == labelled - {"Hernia"}
    assert found <= labelled
