"""A provisioned network: installed code and BYOC, rights, and the evaluation of a model."""

import time

import deployed
from cxr_study.deployment.flare_session import FlareSession
from cxr_study.reports.run.cross_site_results import read


def test_nobody_from_elsewhere_reads_a_sites_files(network):
    said = network.console(network.admin, "cat nih log.txt")
    assert "not authorized" in said.lower() and "INFO" not in said


def test_a_lead_who_may_bring_no_code_trains_with_installed_code(results):
    trained = results.trained
    assert trained.status == "FINISHED:COMPLETED"
    assert trained.meta["submitter_name"] == "lead@university.org"
    assert not trained.meta.get("byoc")
    union = {"Edema", "Fracture", "Nodule/Mass", "Pleural Effusion"}  # of what the sites share
    assert set(trained.last.manifest["classes"]) == union


def test_the_project_admin_may_bring_code(network, results):
    evaluated = results.evaluated
    assert evaluated.status == "FINISHED:COMPLETED"
    assert evaluated.meta["submitter_name"] == "admin@network.org"
    assert evaluated.meta["byoc"]
    log = (network.kit("nih") / evaluated.job_id / "log.txt").read_text()
    assert "runs the job's own surgical_aggregation, cxr_study" in log


def test_code_is_refused_from_a_lead_who_may_bring_none_and_the_job_says_so(network, results):
    with FlareSession(network.lead) as session:
        job_id = session.submit(network.folder / "evaluation-byoc" / "job")
        meta = deployed.wait(session, job_id)
        deadline = time.monotonic() + 10
        while "job_deploy_detail" not in meta:  # FLARE says why a moment later
            assert time.monotonic() < deadline, meta
            meta = session.meta(job_id)
    assert meta["status"] == "FINISHED:FAILED_TO_RUN"
    assert meta["job_deploy_detail"] == ["server: BYOC not permitted"]


def test_the_evaluation_measures_what_the_training_job_did_bit_for_bit(results):
    assert read(results.evaluated.server) == read(results.trained.server)


def test_a_site_reports_no_more_to_an_evaluation_than_its_policy_shares(results):
    counted = {}
    for row in read(results.evaluated.server):
        counted.setdefault(row.site, {})[row.class_name] = row.positives is not None
    assert counted == {
        "nih": dict.fromkeys(["Edema", "Nodule/Mass", "Pleural Effusion"], True),
        "chexpert": dict.fromkeys(["Edema", "Fracture"], False),
        "mercy": {"Fracture": False},
    }
