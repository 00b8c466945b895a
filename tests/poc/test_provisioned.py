"""A provisioned network: kits as hospitals get them, installed code, carried code, and rights."""

import time

import deployed
from cxr_study.deployment.flare_session import FlareSession


class TestKits:
    def test_preflight_check_passes_for_server_site_and_admin(self, network):
        assert set(network.verdicts.values()) == {"pass"}, network.verdicts

    def test_nobody_from_elsewhere_reads_a_sites_files(self, network):
        said = network.console(network.admin, "cat nih log.txt")
        assert "not authorized" in said.lower() and "INFO" not in said


class TestInstalledCode:
    def test_runs_for_a_lead_who_may_bring_none(self, results):
        assert not results["command"].meta.get("byoc")
        assert results["command"].status == "FINISHED:COMPLETED"

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
        assert done.status == "FINISHED:COMPLETED" and done.meta["byoc"]
        assert (
            "runs the job's own surgical_aggregation, cxr_study"
            in (network.kit("nih") / done.job_id / "log.txt").read_text()
        )
