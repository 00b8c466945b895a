"""Two studies on one network: FLARE's studies, and what the server keeps apart for them."""

import pytest
import yaml

import tiny_job
from cxr_deployment.flare_session import FlareSession, SessionError
from deployed import PROJECT, ended, poc_system

SITES = ("one", "two", "three")
HEART = {name: {"classes": ["Edema"], "images": 8} for name in ("one", "two")}
LUNG = {name: {"classes": ["Mass"], "images": 8} for name in ("one", "three")}
PERMITTED = {
    study: {name: site["classes"] for name, site in sites.items()}
    for study, sites in (("heart", HEART), ("lung", LUNG))
}
LEAD = "lead@university.org"


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    project = yaml.safe_load(PROJECT.read_text())
    studies = {
        study: {"site_orgs": {name: [name] for name in sites}, "admins": [LEAD]}
        for study, sites in PERMITTED.items()
    }
    project |= {"api_version": 4, "studies": studies}
    clients = [{"name": name, "type": "client", "org": name} for name in SITES]
    others = [one for one in project["participants"] if one["type"] != "client"]
    own = [one for one in others if one.get("role") != "org_admin"]
    project["participants"] = [*own, *clients]
    (folder / "project.yml").write_text(yaml.safe_dump(project))
    made = folder / "project.yml"
    with poc_system(folder, SITES, project=made, permitted=PERMITTED) as system:
        yield system


def run(system, job, study):
    with FlareSession(system.lead, study=study) as session:
        return ended(session, system, session.submit(job))


def test_what_is_kept_apart(system, tmp_path):
    def job(name, sites, **settings):
        return tiny_job.make(tmp_path / name, sites, settings={"num_rounds": 1, **settings})

    heart = run(system, job("heart", HEART), "heart")
    assert set(heart.last.manifest["classes"]) == {"Edema"}
    lung = run(system, job("lung", LUNG, continues=heart.job_id), "lung")
    assert f"job '{heart.job_id}' has no last.npz" in reason(lung)
    on = run(system, job("on", HEART, continues=heart.job_id), "heart")
    assert on.last.manifest["round"] == 2
    none = run(system, job("none", HEART), "default")
    assert "the site is not permitted to train ['Edema']" in reason(none)

    with FlareSession(system.lead, study="lung") as session:
        with pytest.raises(SessionError, match="refuses"):
            session.meta(heart.job_id)
        with pytest.raises(SessionError, match="'two' is not enrolled in study 'lung'"):
            session.submit(job("outside", HEART))
    with pytest.raises(SessionError, match="kidney"):
        FlareSession(system.lead, study="kidney").__enter__()


def reason(job):
    return next(line["reason"] for line in job.record if line["event"] == "failed")
