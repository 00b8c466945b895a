"""Where a site's file is."""

from pathlib import Path

import pytest

from cxr_study.common import offered_data
from cxr_study.common.offered_data import PHANTOM, DemoData
from cxr_study.data.sites import site_folder as module
from cxr_study.data.sites.site_folder import site_file
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.contract.site_policy import NO_POLICY, SitePolicy

POLICY = SitePolicy(report_counts=True)


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """The site's file, in every folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        offered_data, "demo_data", lambda _: DemoData((), lambda: Path("demo"), None)
    )
    for name in ("job", "hospital", "started", "demo"):
        Path(name).mkdir()
        Path(name, "nih.yaml").touch()


@pytest.mark.parametrize(("given", "policy", "variable", "folder"), [
    ("job", NO_POLICY, "", "job"),
    (None, NO_POLICY, "", "demo"),
    (PHANTOM, NO_POLICY, "", "demo"),
    ("", SitePolicy(site_files="hospital"), "", "hospital"),
    ("hospital", SitePolicy(site_files="hospital"), "", "hospital"),
    ("started", SitePolicy(site_files="hospital"), "started", "hospital"),
    ("started", POLICY, "started", "started"),
    (PHANTOM, POLICY, PHANTOM, "demo"),
])  # fmt: skip
def test_a_policy_says_where_else_the_variable_and_without_a_policy_the_job(
    given, policy, variable, folder, monkeypatch
):
    monkeypatch.setenv(module.VARIABLE, variable)
    assert site_file("nih", given, policy) == Path(folder, "nih.yaml")


@pytest.mark.parametrize(("site", "given", "policy", "message"), [
    ("nih", "job", SitePolicy(site_files="hospital"), "says itself .* the job names 'job'"),
    ("nih", "job", POLICY, "the job names 'job'"),
    ("nih", PHANTOM, POLICY, "the job names 'phantom'"),
    ("nih", "", POLICY, "needs the folder .*site_files.*CXR_SITES.*'phantom'"),
    ("../job/nih", None, SitePolicy(site_files="hospital"), "does not exist"),
    ("/etc/nih", "job", NO_POLICY, "does not exist"),
])  # fmt: skip
def test_a_job_leads_a_hospital_neither_to_another_folder_nor_to_the_phantom(
    site, given, policy, message, monkeypatch
):
    monkeypatch.delenv(module.VARIABLE, raising=False)
    with pytest.raises(SiteError, match=message):
        site_file(site, given, policy)
