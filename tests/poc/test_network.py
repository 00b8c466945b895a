"""A provisioned network of three hospitals: code, rights, policies, evaluation, and strangers."""

import datetime
import json
import re
import shutil
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

import deployed
import tiny_job
from cxr_deployment import processes
from cxr_deployment.flare_session import FlareSession, SessionError
from cxr_deployment.job_watch import start_failure, watch
from cxr_phantom.writers.write_phantom import write_phantom
from cxr_study.evaluation.summary_json import Summary
from cxr_study.reports.run.cross_site_results import read
from html_page import Page
from secrecy import names, unpacked
from surgical_aggregation import __version__
from surgical_aggregation.site.contract.site_policy import SitePolicy
from surgical_aggregation.site.local_notes import notes_file
from tiny_site import COMPLAINT, TinySite
from typed import answer

DAY = datetime.timedelta(days=1)
OF_NIH = ["Edema", "Nodule/Mass", "Pleural Effusion"]
SITES = {
    "nih": {"classes": OF_NIH, "images": 40, "complains": True},
    "chexpert": {"classes": ["Edema", "Private Sign", "Fracture", "Rare Sign"], "images": 24},
    "mercy": {"classes": ["Fracture", "Support Devices"], "images": 16},
}
STREAMER = tiny_job.part(
    "nvflare.app_common.logging.job_log_streamer.JobLogStreamer",
    {"target_parent_server": True}, id="log_streamer",
)  # fmt: skip
"""Sends a site's log.txt to the server while the job runs, where the site lets it."""

WITHHELD = ("Private Sign", "Rare Sign")
SHARED = ("Edema", "Fracture", "Rare Sign")  # by chexpert, where Rare Sign is too rare


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """The running network, localised as hospitals do; always stopped.

    nih shares everything, counts too. chexpert does not share Private Sign, and has fewer positives
    of Rare Sign than it asks for; it stays out of jobs with a head of all classes. mercy claims
    Support Devices, which the server does not permit it to train. Only the project admin may bring
    code. Jobs ask for the sites' logs, and chexpert sends them, as FLARE does by default.
    """
    folder = tmp_path_factory.mktemp("network")
    few = rare(folder) + 1
    policies = {
        "nih": SitePolicy(report_counts=True, site_files=str(folder / "phantom/sites")),
        "chexpert": SitePolicy(share=SHARED, min_positives=few, refuse_union_head=True),
        "mercy": SitePolicy(),
    }
    permitted = {"nih": OF_NIH, "chexpert": ["Edema", "Fracture"], "mercy": ["Fracture"]}
    with deployed.Network(folder).provision(list(SITES)) as network:
        network.localise(policies, permitted, byoc="admin")
        with tiny_job.edited(network.kit("chexpert") / "local/resources.json") as resources:
            resources["allow_log_streaming"] = True
        assert network.preflight("server") == "pass"
        network.start_server()
        assert network.preflight("nih") == network.preflight(network.lead.name) == "pass"
        network.start_sites()
        yield network


def rare(folder):
    """Positives of the class that chexpert has fewest of; of the others it shares it has more."""
    table = folder / "sites.json"
    table.write_text(json.dumps(SITES))
    site = TinySite("chexpert", str(table))
    found = dict(zip(site.classes, site.training_labels.sum(axis=0), strict=True))
    assert found["Rare Sign"] < min(found["Edema"], found["Fracture"])
    return int(found["Rare Sign"])


def streamed(folder, name, code, **settings):
    """A tiny job whose code gets to the sites in a given way, and whose logs are streamed."""
    settings = {"report_counts": True, "min_clients": 2, **settings}
    made = tiny_job.make(
        folder / f"{name}-{code}", SITES, job=name, settings=settings, site=tiny_job.KERAS,
        code=code,
    )  # fmt: skip
    for file in made.glob("app_*/config/config_fed_client.json"):
        with tiny_job.edited(file) as client:
            client["components"].append(STREAMER)
    return made


@pytest.fixture(scope="module")
def results(network):
    """What two jobs left: `trained` and `evaluated`.

    A training with installed code, submitted as the lead by FLARE's command. An evaluation of its
    best model that brings its code (BYOC), submitted as the project admin in the console.
    """
    job = streamed(network.folder, "surgical", "installed", num_rounds=2, warmup_epochs=1)
    submit = ("job", "submit", "-j", job, "--startup-kit", network.lead)
    output = network.nvflare(*submit, "--format", "json")
    with FlareSession(network.lead) as session:
        trained = deployed.ended(session, network, json.loads(output)["data"]["job_id"])
    job = streamed(network.folder, "evaluation", "carried", model_of=trained.job_id)

    def submitted():  # the console tries to log in once
        output = network.console(network.admin, f"submit_job {job}")
        return re.search(r"Submitted job: (\S+)", output)

    with FlareSession(network.admin) as session:  # a lead may not download another's job
        evaluated = deployed.ended(session, network, deployed.until(submitted)[1])
    return SimpleNamespace(trained=trained, evaluated=evaluated)


def test_an_admin_cannot_read_a_sites_files(network):
    def refused():
        printed = network.console(network.admin, "cat nih log.txt")  # a busy site may be late
        assert "INFO" not in printed
        return "this site's files are read at the site only" in printed

    deployed.until(refused)


def test_a_lead_who_may_bring_no_code_trains_with_installed_code(results):
    trained = results.trained
    assert trained.status == "FINISHED:COMPLETED"
    assert trained.meta["submitter_name"] == "lead@university.org"
    assert not trained.meta.get("byoc")
    classes = trained.last.manifest["classes"]  # of what the sites share and may train
    assert set(classes) == {"Edema", "Fracture", "Nodule/Mass", "Pleural Effusion"}
    refused = [event for event in trained.record if event["event"] == "refused"]
    assert {event["site"] for event in refused} == {"mercy"}  # whole
    assert re.search(r"not permitted to \w+ \['Support Devices'\]", refused[0]["reason"])
    assert classes["Fracture"]["sites"] == ["chexpert"]


def test_what_came_home_makes_a_report_a_card_and_a_table(results):
    """Of a job between hospitals, whose data stay there."""
    folder = results.trained.server.parent
    output = answer("report", folder, code=3)
    assert "Measured at the sites." in output and "mercy" in output  # which is in no round
    summary = Summary.from_json((folder / "report/summary.json").read_text())
    assert summary.data == "elsewhere" and summary.num_rounds == 2 and len(summary.rounds) == 3
    table = pd.read_csv(folder / "report/federated_test.csv")
    measured = {(row.site, row.class_name): row.auroc for row in summary.test if row.labelled}
    assert len(measured) == len(table) > 3
    for row in table.itertuples():
        assert measured[row.site, row.class_name] == (None if np.isnan(row.auroc) else row.auroc)
    page = Page((folder / "report/report.html").read_text())
    assert page.needs_nothing_else() and all(site in page.text for site in summary.sites)
    card = (folder / "workspace/models/model_card.md").read_text()
    assert all(f"| {name} |" in card for name in summary.union)
    assert "stay with them" in card and "**Absent:** mercy contributed to no round" in card


def test_the_project_admin_may_bring_code(results):
    evaluated = results.evaluated
    assert evaluated.status == "FINISHED:COMPLETED"
    assert evaluated.meta["submitter_name"] == "admin@network.org"
    assert evaluated.meta["byoc"]


def newest_notes(network, site):
    return max(network.kit(site).glob("local_notes/*"), key=lambda at: at.stat().st_mtime)


def test_a_dry_run_says_before_any_training_who_cannot_take_part_and_why(network, results):
    job = network.folder / "surgical-installed" / "job"
    output = answer("deploy", "check", job, "--kit", network.lead, code=1)
    free = r"[\d,.]+ GB free, certificate for 3\d\d days"
    facts = rf"\(surgical-aggregation {__version__}, .*, {free}\)"
    why = (
        "the site is not permitted to train ['Support Devices']: add them to the server's table, "
        "or remove them from the site's classes"
    )
    for site in SITES:
        verdict = re.escape(f"cannot participate: {why}") if site == "mercy" else "can participate"
        assert re.search(rf"^{site} +{verdict} {facts}$", output, re.M), output
    assert "not all sites can participate" in output
    newest = newest_notes(network, "mercy")
    assert f"the server refuses it: {why}" in newest.read_text()
    assert not (network.server / "checkpoints" / newest.stem).exists()


def test_a_site_stays_out_of_a_job_that_gives_every_site_all_classes(network, results):
    folder = network.folder / "union-head"
    job = tiny_job.make(folder, SITES, site=tiny_job.UNION_HEAD, code="installed")
    output = answer("deploy", "check", job, "--kit", network.lead, code=1)
    assert re.search(r"^nih +can participate", output, re.M)
    assert re.search(r"^chexpert +cannot participate: the reason is in local_notes", output, re.M)
    notes = newest_notes(network, "chexpert").read_text()
    assert "this site's policy has 'refuse_union_head'" in notes


def test_code_is_refused_from_a_lead_who_may_bring_none_and_the_job_says_so(network, results):
    with FlareSession(network.lead) as session:
        job_id = session.submit(network.folder / "evaluation-carried" / "job")
        meta = deployed.wait(session, job_id)
        assert meta["status"] == "FINISHED:FAILED_TO_RUN"
        why = deployed.until(lambda: session.meta(job_id).get("job_deploy_detail"))  # a bit later
    assert why == ["server: BYOC not permitted"]


def test_the_evaluation_measures_what_the_training_job_did_and_counts_as_policies_allow(results):
    # mercy declares what it may not train: it is left out of training, and so of the test there
    evaluated = read(results.evaluated.server)
    others = evaluated[evaluated["site"] != "mercy"].reset_index(drop=True)
    assert others.equals(read(results.trained.server))
    counted = {}
    for row in evaluated.itertuples():
        counted.setdefault(row.site, {})[row.class_name] = pd.notna(row.positives)
    assert counted == {
        "nih": dict.fromkeys(OF_NIH, True), "mercy": {"Fracture": False},
        "chexpert": dict.fromkeys(["Edema", "Fracture"], False),
    }  # fmt: skip


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


def test_no_sites_logs_are_at_the_server(network, results, servers_bytes):
    for site in SITES:
        assert holding(servers_bytes, f"identity={site}") == []
    errors = network.kit("nih") / results.trained.job_id / "error_log.txt"
    assert COMPLAINT in errors.read_text()
    assert holding(servers_bytes, COMPLAINT) == []


@pytest.mark.parametrize(("app", "attack"), [
    ("app_server", "file"), ("app_client", "command"), ("app_client", "found by name"),
])  # fmt: skip
def test_a_job_without_code_writes_no_file_and_runs_no_command(network, app, attack):
    folder, owned = network.folder / f"{attack}-{app}", network.folder / "owned"
    job = tiny_job.make(folder, SITES, code="installed")
    config = job / app / "config"
    if attack == "found by name":
        reason = "may have only its configuration files"
        (config / "comm_config.json").write_text('{"comm_driver_path": "."}')
        (config / "evil.py").write_text(f"open({str(owned)!r}, 'w')")
    else:
        path, arguments = {
            "file": ("cxr_study.common.files.replace", {"path": str(owned), "content": "x"}),
            "command": ("subprocess.Popen", {"args": ["touch", str(owned)]}),
        }[attack]
        reason = f"lacks '{path}'"
        (file,) = config.glob("*.json")
        with tiny_job.edited(file) as changed:
            changed["components"].insert(0, tiny_job.part(path, arguments, id="hostile"))
    with FlareSession(network.lead) as session:
        meta = watch(session, session.submit(job), show=print, say=print).meta
    assert meta["status"] == "FINISHED:FAILED_TO_RUN" and not owned.exists()
    assert reason in start_failure(meta)


def test_a_name_that_a_job_gives_is_never_imported(network):
    folder = network.folder / "by-name"
    write_phantom(network.folder / "phantom", images_per_site=40, size=16, sites=["nih"])
    job = tiny_job.make(folder, SITES, code="installed", settings={"min_clients": 1})
    site = {"site": "nih", "backbone": "os:system"}
    for file in job.glob("app_*/config/config_fed_client.json"):
        with tiny_job.edited(file) as client:
            path = "cxr_study.training.chest_xray_site.ChestXraySite"
            client["components"][0] = tiny_job.part(path, site, id="site")
    result = deployed.run(network, job)
    assert result.status != "FINISHED:COMPLETED"
    notes = (network.kit("nih") / notes_file(result.job_id)).read_text()
    assert "backbone must be one of (" in notes and "got 'os:system'" in notes


# After the tests of the server's files: one stranger takes part in a job.
def test_an_impostor_is_refused_under_its_own_name_and_the_victim_trains(network):
    """A site with a good certificate of its own, in its job's process."""
    folder, classes = network.folder / "guise", ["Edema", "Pleural Effusion"]
    job = tiny_job.make(
        folder, {site: {"classes": classes, "images": 16} for site in ("nih", "mercy")},
        code="installed", claims={"mercy": ["nih", classes]},
        settings={"num_rounds": 1, "warmup_epochs": 1, "min_clients": 1, "wait_seconds": 60},
    )  # fmt: skip
    result = deployed.run(network, job)
    assert result.status == "FINISHED:COMPLETED"
    refused = [event for event in result.record if event["event"] == "refused"]
    reasons = {(event["site"], event["task"], event["reason"]) for event in refused}
    tasks = ("check", "train", "validate", "test")
    assert reasons == {("mercy", task, "it calls itself 'nih'") for task in tasks}
    assert result.last.manifest["classes"]["Edema"]["sites"] == ["nih"]


def copied(kit, target, authority, until):
    """A copy of a kit with a certificate by an authority, valid for a time from now."""
    for part in ("startup", "local"):
        shutil.copytree(kit / part, target / part)
    path = target / "startup" / "client.crt"
    valid = x509.load_pem_x509_certificate(path.read_bytes())
    now = datetime.datetime.now(datetime.timezone.utc)
    builder = x509.CertificateBuilder(
        valid.issuer, valid.subject, valid.public_key(), x509.random_serial_number(),
        now - 30 * DAY, now + until, list(valid.extensions),
    )  # fmt: skip
    certificate = builder.sign(authority, hashes.SHA256())
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return target


def test_the_server_refuses_bad_certificates_and_they_disturb_nobody(network):
    """Two for mercy: one expired yesterday, one is signed by another authority."""
    state = json.loads((network.server.parents[1] / "state" / "cert.json").read_text())
    own = serialization.load_pem_private_key(state["root_pri_key"].encode(), None)
    other = rsa.generate_private_key(65537, 2048)
    mercy, folder = network.kit("mercy"), network.folder / "impostors"
    impostors = [copied(mercy, folder / "1", own, -DAY), copied(mercy, folder / "2", other, DAY)]
    assert deployed.keeps_open(network.project.port, mercy)
    for kit in impostors:
        assert not deployed.keeps_open(network.project.port, kit, seconds=60)

    lead, foreign = network.lead, deployed.Network(folder / "another").provision(["mercy"]).lead
    expired = datetime.datetime.now(datetime.timezone.utc).date() - DAY
    for kit, reason in (
        (foreign, "not made for this server: its root certificate, '"),
        (copied(lead, folder / "3", own, -DAY), f"expired on {expired}"),
    ):
        config = kit / "startup/fed_admin.json"
        admin = json.loads(config.read_text())
        admin["admin"]["port"] = network.project.port
        config.write_text(json.dumps(admin))
        with pytest.raises(SessionError, match=reason), FlareSession(kit):
            pass
    for kit in impostors:
        processes.start(kit, network.environment)
    logs = [kit / "log.txt" for kit in impostors]
    deployed.until(lambda: all(log.exists() and log.read_text() for log in logs))
    time.sleep(5)  # they try again and again
    with FlareSession(network.lead) as session:
        assert session.sites() == set(network.project.sites)
    for log in logs:
        assert "Successfully registered client" not in log.read_text()
    assert (network.server / "log.txt").read_text().count("New client mercy@") == 1
