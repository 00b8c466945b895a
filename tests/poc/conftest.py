"""A provisioned network of three hospitals with policies, and two jobs that it has run."""

import json
import re
from types import SimpleNamespace

import pytest

import deployed
import tiny_job
from cxr_study.deployment.flare_session import FlareSession
from cxr_study.deployment.site_kit import localise_server, localise_site
from cxr_study.jobs import job_templates
from cxr_study.jobs.code_shipping import PACKAGES
from simulated import undisturbed_run
from surgical_aggregation.site.contract.site_policy import SitePolicy
from tiny_site import TinySite

SITES = {
    "nih": {
        "classes": ["Edema", "Nodule/Mass", "Pleural Effusion"],
        "images": 40,
        "complains": True,
    },
    "chexpert": {"classes": ["Edema", "Private Sign", "Fracture", "Rare Sign"], "images": 24},
    "mercy": {"classes": ["Fracture", "Support Devices"], "images": 16},
}
STREAMER = """
  { id = "log_streamer", path = "nvflare.app_common.logging.job_log_streamer.JobLogStreamer"
    args { target_parent_server = true } }"""
"""Sends a site's log.txt to the server while the job runs, where the site lets it."""

SHARED = ("Edema", "Fracture", "Rare Sign")  # by chexpert, where Rare Sign is too rare


@pytest.fixture(scope="session")
def network(tmp_path_factory):
    """The running network, localised as hospitals would; always stopped.

    nih shares everything, counts too. chexpert does not share Private Sign, and has fewer positives
    of Rare Sign than it asks for. mercy claims Support Devices, which the server does not permit it
    to train. Only the project admin may bring code. chexpert's logs are streamed, as FLARE does by
    default; the others' are not, though the job asks for them.
    """
    network = deployed.Network(tmp_path_factory.mktemp("network")).provision(list(SITES))
    policies = {
        "nih": SitePolicy(report_counts=True),
        "chexpert": SitePolicy(share=SHARED, min_positives=rare(network.folder) + 1),
        "mercy": SitePolicy(),
    }
    own = {"carriers": "admin", "packages": (*PACKAGES, "tiny_site", "numpy_site", "faults")}
    for site, policy in policies.items():
        localise_site(network.kit(site), policy, **own)
    resources = network.kit("chexpert") / "local/resources.json"
    content = json.loads(resources.read_text())
    resources.write_text(json.dumps({**content, "allow_log_streaming": True}))
    permitted = {
        "nih": SITES["nih"]["classes"], "chexpert": ["Edema", "Fracture"], "mercy": ["Fracture"],
    }  # fmt: skip
    localise_server(network.server, network.folder / "storage", permitted=permitted, **own)
    try:
        assert network.preflight("server") == "pass"
        network.start_server()
        assert network.preflight("nih") == network.preflight(network.lead.name) == "pass"
        network.start_sites()
        yield network
    finally:
        network.stop()


def rare(folder):
    """Positives of the class that chexpert has fewest of; of the others it shares it has more."""
    table = folder / "sites.json"
    table.write_text(json.dumps(SITES))
    site = TinySite("chexpert", str(table))
    found = dict(zip(site.classes, site.training_labels.sum(axis=0), strict=True))
    assert found["Rare Sign"] < min(found["Edema"], found["Fracture"])
    return int(found["Rare Sign"])


@pytest.fixture(scope="session")
def job(network):
    """Makes a tiny job whose code gets to the sites in a given way."""

    def make(code, name="surgical", **settings):
        folder = network.folder / f"{name}-{code}"
        template = folder / "template"
        job_templates.write(name, template, code)
        settings = {"report_counts": True, **(settings or {"num_rounds": 2, "warmup_epochs": 1})}
        made = tiny_job.make(folder, SITES, job=template, settings=settings, site=tiny_job.KERAS)
        for client in made.glob("app_*/config/config_fed_client.conf"):
            text = client.read_text()
            client.write_text(text.replace("components = [", f"components = [{STREAMER}", 1))
        return made

    return make


@pytest.fixture(scope="session")
def results(network, job):
    """What two jobs left: `trained` and `evaluated`.

    A training with installed code, submitted as the lead by FLARE's command. An evaluation of its
    best model that brings its code (BYOC), submitted as the project admin in the console.
    """
    submit = ("job", "submit", "-j", job("installed"), "--startup-kit", network.lead)
    said = network.nvflare(*submit, "--format", "json")
    with FlareSession(network.lead) as session:
        trained = deployed.ended(session, network, json.loads(said)["data"]["job_id"])
    folder = job("byoc", name="evaluation", model_of=trained.job_id)
    said = network.console(network.admin, f"submit_job {folder}")
    with FlareSession(network.admin) as session:  # a lead may not download another's job
        job_id = re.search(r"Submitted job: (\S+)", said)[1]
        evaluated = deployed.ended(session, network, job_id)
    return SimpleNamespace(trained=trained, evaluated=evaluated)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """The run that faults strike, without them."""
    return undisturbed_run(tmp_path_factory, "undisturbed")
