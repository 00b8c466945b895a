"""Where a site's files are."""

from pathlib import Path

import pytest

from cxr_study.phantom import PHANTOM
from cxr_study.phantom import site_folder as module
from cxr_study.phantom.site_folder import site_folder
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.contract.site_policy import NO_POLICY, SitePolicy

POLICY = SitePolicy(report_counts=True)


@pytest.mark.parametrize(
    ("given", "policy", "folder"),
    [
        ("job", NO_POLICY, "job"),
        ("job", SitePolicy(site_files="hospital"), "job"),
        ("", SitePolicy(site_files="hospital"), "hospital"),
        (None, NO_POLICY, "demo"),
        (PHANTOM, POLICY, "demo"),
        (None, SitePolicy(site_files=PHANTOM), "demo"),
    ],
)
def test_the_jobs_wins_then_the_policys_and_the_phantom_by_name(given, policy, folder, monkeypatch):
    monkeypatch.setattr(module, "demo_study", lambda: Path("demo"))
    assert site_folder(given, policy) == Path(folder)


@pytest.mark.parametrize("given", [None, ""])
def test_a_hospital_never_trains_on_the_phantom_unasked(given, monkeypatch):
    monkeypatch.setattr(module, "demo_study", None)
    with pytest.raises(SiteError, match=r"needs the folder .*site_files.*CXR_SITES.*'phantom'"):
        site_folder(given, POLICY)
