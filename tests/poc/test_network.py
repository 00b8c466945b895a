"""A provisioned network: kits, installed and carried code, rights.

A training by installed code, submitted by FLARE's command, and an evaluation of its best model that
carries its code, submitted in the admin console.
"""

import time

import pytest

import deployed
from cxr_study.deployment.flare_session import FlareSession
from cxr_study.reports.run.cross_site_results import read

SUBMITTERS = {"console": "admin@network.org", "command": "lead@university.org"}


class TestKits:
    def test_preflight_check_passes_for_server_site_and_admin(self, network):
        assert set(network.verdicts.values()) == {"pass"}, network.verdicts

    def test_nobody_from_elsewhere_reads_a_sites_files(self, network):
        said = network.console(network.admin, "cat nih log.txt")
        assert "not authorized" in said.lower() and "INFO" not in said


@pytest.mark.parametrize(("way", "submitter"), SUBMITTERS.items())
def test_a_job_runs_to_its_end_whichever_way_it_is_submitted(results, way, submitter):
    assert results[way].status == "FINISHED:COMPLETED"
    assert results[way].meta["submitter_name"] == submitter


class TestInstalledCode:
    def test_runs_for_a_lead_who_may_bring_none(self, results):
        assert not results["command"].meta.get("byoc")

    def test_the_model_has_the_union_of_what_the_places_let_out(self, results):
        union = {"Edema", "Fracture", "Nodule/Mass", "Pleural Effusion"}
        assert set(results["command"].last.manifest["classes"]) == union


class TestCarriedCode:
    def test_is_refused_from_a_lead_who_may_bring_none_and_the_job_says_so(self, network, results):
        with FlareSession(network.lead) as session:
            job_id = session.submit(network.folder / "evaluation-carried" / "job")
            meta = deployed.wait(session, job_id)
            deadline = time.monotonic() + 10
            while "job_deploy_detail" not in meta:  # FLARE says why a moment later
                assert time.monotonic() < deadline, meta
                meta = session.meta(job_id)
        assert meta["status"] == "FINISHED:FAILED_TO_RUN"
        assert meta["job_deploy_detail"] == ["server: BYOC not permitted"]

    def test_runs_for_the_project_admin_who_may(self, network, results):
        done = results["console"]
        log = (network.kit("nih") / done.job_id / "log.txt").read_text()
        assert done.meta["byoc"]
        assert "runs the job's own surgical_aggregation, cxr_study" in log


class TestEvaluation:
    def test_it_measures_what_the_training_job_did_bit_for_bit(self, results):
        assert read(results["console"].server) == read(results["command"].server)

    def test_a_site_tells_no_more_than_its_policy_lets_out(self, results):
        told = {}
        for row in read(results["console"].server):
            told.setdefault(row.site, {})[row.class_name] = row.positives is not None
        assert told == {
            "nih": dict.fromkeys(["Edema", "Nodule/Mass", "Pleural Effusion"], True),
            "chexpert": dict.fromkeys(["Edema", "Fracture"], False),
            "mercy": {"Fracture": False},
        }
