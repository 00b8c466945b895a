"""A provisioned network: kits, installed and carried code, rights, certificates, identities.

A training by installed code, submitted by FLARE's command, and an evaluation of its best model that
carries its code, submitted in the admin console; while impostors knock at the server.
"""

import datetime
import json
import shutil
import socket
import ssl
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

import deployed
import tiny_job
from cxr_study.deployment import processes
from cxr_study.deployment.flare_session import FlareSession
from cxr_study.jobs import job_templates
from cxr_study.reports.run.cross_site_results import read

SUBMITTERS = {"console": "admin@network.org", "command": "lead@university.org"}
DAY = datetime.timedelta(days=1)


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


@pytest.fixture(scope="module")
def guise(network):
    folder = network.folder / "guise"
    classes = ["Edema", "Pleural Effusion"]
    sites = {site: {"classes": classes, "images": 16} for site in ("nih", "mercy")}
    job_templates.write("surgical", folder / "template", "installed")
    settings = {"num_rounds": 1, "warmup_epochs": 1, "min_clients": 1, "wait_seconds": 60}
    job = tiny_job.make(
        folder, sites, job=folder / "template", settings=settings,
        claims={"mercy": ["nih", classes]},
    )  # fmt: skip
    return deployed.run(network, job)


class TestIdentity:
    """A site with a good certificate of its own, whose job process calls itself by another's."""

    def test_it_is_refused_under_its_own_name_and_the_victim_teaches(self, guise):
        assert guise.status == "FINISHED:COMPLETED"
        refused = [event for event in guise.record if event["event"] == "refused"]
        said = {(event["site"], event["task"], event["reason"]) for event in refused}
        tasks = ("train", "validate", "test")
        assert said == {("mercy", task, "it calls itself 'nih'") for task in tasks}
        assert guise.last.manifest["classes"]["Edema"]["sites"] == ["nih"]


def copied(kit, target, authority, until):
    """A copy of a kit with a certificate that an authority signed and that is valid for a time."""
    for part in ("startup", "local"):
        shutil.copytree(kit / part, target / part)
    path = target / "startup" / "client.crt"
    valid = x509.load_pem_x509_certificate(path.read_bytes())
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(valid.subject)
        .issuer_name(valid.issuer)
        .public_key(valid.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 30 * DAY)
        .not_valid_after(now + until)
    )
    for extension in valid.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    certificate = builder.sign(authority, hashes.SHA256())
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return target


def accepted(kit, port):
    """Whether a server keeps the connection of a kit's certificate open; FLARE's says no word."""
    startup = kit / "startup"
    context = ssl.create_default_context(cafile=startup / "rootCA.pem")
    context.load_cert_chain(startup / "client.crt", startup / "client.key")
    with (
        socket.create_connection(("localhost", port), timeout=5) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as secure,
    ):
        try:
            return secure.recv(1) != b""
        except TimeoutError:
            return True
        except ssl.SSLError:
            return False


@pytest.fixture(scope="module")
def impostors(network):
    state = json.loads((network.server.parents[1] / "state" / "cert.json").read_text())
    own = serialization.load_pem_private_key(state["root_pri_key"].encode(), None)
    mercy, folder = network.kit("mercy"), network.folder / "impostors"
    return {
        "expired": copied(mercy, folder / "expired", own, -DAY),
        "forged": copied(mercy, folder / "forged", rsa.generate_private_key(65537, 2048), DAY),
    }


class TestCertificates:
    """Two that pass for mercy: one expired yesterday, one is another authority's of that name."""

    def test_the_server_refuses_them(self, network, impostors):
        kits = {"valid": network.kit("mercy"), **impostors}
        found = {name: accepted(kit, network.project.port) for name, kit in kits.items()}
        assert found == {"valid": True, "expired": False, "forged": False}

    def test_they_are_never_let_in_and_disturb_nobody(self, network, impostors):
        for kit in impostors.values():
            processes.start(kit, network.environment)
        logs = [kit / "log.txt" for kit in impostors.values()]
        deadline = time.monotonic() + 60
        while not all(log.exists() and log.read_text() for log in logs):
            assert time.monotonic() < deadline, logs
            time.sleep(0.5)
        time.sleep(10)  # they try again and again
        with FlareSession(network.lead) as session:
            assert session.sites() == set(network.sites)
        for log in logs:
            assert "Successfully registered client" not in log.read_text()
        assert (network.server / "log.txt").read_text().count("New client mercy@") == 1
