"""A site whose service sends requests to other sites and to the server, over TLS.

nih asks. chexpert has the guards that `surgagg deploy kit site` writes; nih has none, which would
drop answers, and mercy has none, to show what FLARE alone answers.
"""

import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import ServerCommandNames

import deployed
import tiny_job
from cxr_deployment.flare_session import FlareSession
from prying import ask
from surgical_aggregation.site.contract.site_policy import SitePolicy

SITES = {
    "nih": {"classes": ["Edema"], "images": 24},
    "chexpert": {"classes": ["Edema", "Rare Sign"], "images": 24},
    "mercy": {"classes": ["Edema", "Fracture"], "images": 24},
}
GUARDS = ("site_requests", "server_requests")


def without_guards(file):
    with tiny_job.edited(file) as content:
        parts = content["components"]
        assert {part["id"] for part in parts} & {*GUARDS}
        content["components"] = [part for part in parts if part["id"] not in GUARDS]


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """The network before its server has its guard; always stopped."""
    folder = tmp_path_factory.mktemp("colleague")
    with deployed.Network(folder / "network").provision(SITES) as network:
        network.localise(dict.fromkeys(SITES, SitePolicy()))
        local = network.kit("nih") / "local/resources.json"
        with tiny_job.edited(local) as resources:
            args = {"kit": str(network.kit("nih"))}
            resources["components"].append({"id": "prying", "path": "prying.Prying", "args": args})
        for site in ("nih", "mercy"):
            for file in ("resources.json", "privacy.json"):
                without_guards(network.kit(site) / "local" / file)
        yield network


@pytest.fixture(scope="module")
def answers(network):
    """(guarded server, kind of request, target) -> what nih is answered; None: nothing."""
    found = {}
    kit = network.kit("nih")
    for site in ("chexpert", "mercy"):
        (network.kit(site) / "secret").write_text("row of a patient")
    resources = network.server / "local/resources.json"
    whole = resources.read_text()
    without_guards(resources)
    for guarded in (False, True):
        network.start_server()
        network.start_sites()
        settings = {"num_rounds": 1000}
        folder = network.folder / f"job-{guarded}"
        job = tiny_job.make(folder, SITES, settings=settings, code="installed")
        with FlareSession(network.lead) as session:
            job_id = session.submit(job)
            meta = deployed.wait(session, job_id, holds=lambda meta: meta["status"] == "RUNNING")
            assert meta["status"] == "RUNNING"
            deployed.until(lambda job_id=job_id: deployed.rounds(network, job_id))
            for site in ("chexpert", "mercy", "server"):
                timeout = 4.0 if guarded or site == "chexpert" else 30.0
                cell, asked = f"{site}.{job_id}", {"manage": (site, "process_info")}
                if site == "server":
                    asked["clients"] = (site, job_id)
                    asked["command"] = (cell, ServerCommandNames.GET_RUN_INFO)
                    event = EventType.FATAL_SYSTEM_ERROR if guarded else "harmless"
                    asked["event"] = (cell, (event, job_id))
                else:
                    asked["shell"] = (site, f"cat {network.kit(site) / 'secret'}")
                    asked["heartbeat"] = (cell, job_id)
                for kind, what in asked.items():
                    found[guarded, kind, site] = ask(kit, kind, *what, timeout)
            made = deployed.rounds(network, job_id)  # the guards do not disturb the job
            deployed.until(lambda job=job_id, made=made: deployed.rounds(network, job) > made)
            session.abort(job_id, 60.0)
        network.stop()
        resources.write_text(whole)
    return found


def test_without_guards_a_site_reads_files_class_names_and_processes(answers):
    assert answers[False, "shell", "mercy"] == "row of a patient"
    assert "Fracture" in answers[False, "heartbeat", "mercy"]
    assert "Process ID" in answers[False, "manage", "mercy"]
    assert "Process ID" in answers[False, "manage", "server"]
    assert "clients" in answers[False, "clients", "server"]
    assert answers[False, "command", "server"] and answers[False, "event", "server"]


def test_a_sites_guards_answer_no_other_site_in_its_service_or_in_a_job(answers, network):
    for kind in ("shell", "heartbeat", "manage"):
        assert answers[False, kind, "chexpert"] is None, kind
    log = (network.kit("chexpert") / "log.txt").read_text()
    assert "dropped the message 'process_info' of 'nih', which is not the server" in log


def test_the_servers_guard_protects_itself_and_sites_without_one(answers, network):
    asked = [key for key in answers if key[0]]
    assert len(asked) == 10 and not any(answers[key] for key in asked)
    log = (network.server / "log.txt").read_text()
    assert "is for 'mercy', and sites may not send each other messages" in log
    assert "dropped the message 'process_info' of 'nih': it is not the server" in log
