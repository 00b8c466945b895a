"""A provisioned network: code, rights, policies of sites and server, evaluation of a model."""

import re
import time

import pytest

import deployed
from cxr_study.deployment.flare_session import FlareSession
from cxr_study.reports.run.cross_site_results import read
from secrecy import names, unpacked
from surgical_aggregation.site.local_notes import notes_file
from tiny_site import COMPLAINT

WITHHELD = ("Private Sign", "Rare Sign")


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


def test_the_evaluation_measures_what_the_training_job_did_and_counts_as_policies_allow(results):
    assert read(results.evaluated.server) == read(results.trained.server)
    counted = {}
    for row in read(results.evaluated.server):
        counted.setdefault(row.site, {})[row.class_name] = row.positives is not None
    assert counted == {
        "nih": dict.fromkeys(["Edema", "Nodule/Mass", "Pleural Effusion"], True),
        "chexpert": dict.fromkeys(["Edema", "Fracture"], False),
        "mercy": {"Fracture": False},
    }


@pytest.fixture(scope="module")
def servers_bytes(network, results):
    """Content of every file of the server's, archives unpacked, once the jobs are done."""
    folders = (network.server, network.folder / "storage")
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return {str(path): unpacked(path.read_bytes()) for path in files}


def holding(contents, name):
    """Names of the files whose bytes hold a name."""
    return [path for path, content in contents.items() if names(content, name)]


def test_a_withheld_class_is_in_no_model_and_in_no_byte_at_the_server(results, servers_bytes):
    assert holding(servers_bytes, "Pleural Effusion")  # the search can find a name at all
    for name in WITHHELD:
        assert name not in results.trained.best.manifest["classes"]
        assert name not in results.trained.last.manifest["classes"]
        assert holding(servers_bytes, name) == []


def test_the_sites_own_notes_alone_say_what_it_withholds_and_why(network, results, servers_bytes):
    kit = network.kit("chexpert")
    notes = (kit / notes_file(results.trained.job_id)).read_text()
    why = re.search(r"\d+ positives, 'min_positives' is \d+", notes)[0]
    assert f"withholds: Private Sign (not in 'share'); Rare Sign ({why})" in notes
    logs = {
        str(path): path.read_bytes()
        for folder in (kit, kit / results.trained.job_id)
        for path in folder.iterdir()
        if path.suffix in (".txt", ".json", ".log")
    }
    assert holding(logs, "declared 2 classes: Edema, Fracture")
    for withheld in (*WITHHELD, why, "not in 'share'"):
        assert holding(logs, withheld) == []
    assert holding(servers_bytes, why) == []


def test_logs_at_the_server_are_those_of_the_site_that_streams_them(
    network, results, servers_bytes
):
    assert holding(servers_bytes, "identity=chexpert")
    for site in ("nih", "mercy"):
        assert holding(servers_bytes, f"identity={site}") == []
    errors = network.kit("nih") / results.trained.job_id / "error_log.txt"
    assert COMPLAINT in errors.read_text()
    assert holding(servers_bytes, COMPLAINT) == []


def test_a_class_that_a_site_may_not_train_is_refused_whole_and_the_run_goes_on(results):
    refused = [event for event in results.trained.record if event["event"] == "refused"]
    assert {event["site"] for event in refused} == {"mercy"}
    assert re.search(r"not permitted to \w+ \['Support Devices'\]", refused[0]["reason"])
    classes = results.trained.last.manifest["classes"]
    assert "Support Devices" not in classes
    assert classes["Fracture"]["sites"] == ["chexpert"]
    assert results.trained.status == "FINISHED:COMPLETED"
