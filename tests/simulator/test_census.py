"""The census job in FLARE's simulator: counts, and what each site learns."""

import json
from pathlib import Path

import pytest

from cxr_audit.census.census import STATES
from cxr_audit.census.flare_counts import from_flare_job
from cxr_audit.census.take_census import take_census
from cxr_phantom.writers.write_phantom import write_phantom
from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES
from cxr_study.data.sites.site_data import load_labels
from cxr_study.data.sites.site_file import read_site_file
from secrecy import names
from simulated import plain

JOB = Path(__file__).parents[2] / "jobs/census"
CLASSES = {"nih": NIH_CLASSES, "chexpert": CHEXPERT_CLASSES}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("census")
    write_phantom(folder / "phantom", images_per_site=120, size=32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SURGAGG_CACHE", str(folder / "cache"))
        yield plain(JOB, folder, CLASSES, CXR_SITES=str(folder / "phantom/sites"))


def test_every_class_has_the_counts_that_its_site_would_share_and_small_ones_are_absent(run):
    statistics = run.server / "statistics/census.json"
    counted = from_flare_job(statistics)
    assert {site.site: {*site.classes} for site in counted} == {s: {*c} for s, c in CLASSES.items()}
    for shared in counted:
        labels = load_labels(read_site_file(run.folder / f"phantom/sites/{shared.site}.yaml"))
        own = take_census(labels, 64, 10).shared.to_json()
        assert shared.to_json() == own
    features = json.loads(statistics.read_text())
    withheld = 0
    for site, classes in CLASSES.items():
        for cell in (f"label {state}: {name}" for name in classes for state in STATES):
            counts = features.get(cell, {}).get("count", {})
            withheld += site not in counts
            assert counts.get(site, {"census": 0})["census"] not in range(1, 10), (site, cell)
    assert withheld


@pytest.mark.parametrize("site", CLASSES)
def test_no_site_receives_or_stores_the_name_of_a_class_it_does_not_label(run, site):
    received = run.received(site)
    assert b"fed_stats_2nd_statistics" in received  # the search can find what is sent
    others = {*NIH_CLASSES, *CHEXPERT_CLASSES} - {*CLASSES[site]}
    for name in {*others, *(name.replace(" ", "_") for name in others)}:
        assert not names(received, name), name
        assert not [path for path, content in run.files(site).items() if names(content, name)], name
