"""What a site's processes receive and its folder holds in a whole run, byte for byte.

The run is tracked, tested at the sites, and its server says which site may train what.
"""

import json
import re
from types import SimpleNamespace

import msgpack
import pytest

import deployed
import simulated
import tiny_job
from secrecy import names, unpacked

SITES = {f"{name}-hospital": entry for name, entry in simulated.SITES.items()}
"""Long names, which a certificate's letters do not hold by chance."""

UNION = {name for site in SITES.values() for name in site["classes"]}
PROCESSES = {"job": "", "parent": ".parent"}

TOLD = {
    "job": {"aggregator", "initial_body", "num_rounds", "test_best", "validate_final"},
    "parent": {"min_clients", "initial_body"},
}
"""Words of the server's configuration that its messages hold: FLARE's headers, and the digest; the
last in the name of a variable that every kit's guard of jobs lets them refer to."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run, and what every process of every site received: (site, process) -> bytes."""
    folder = tmp_path_factory.mktemp("secrecy")
    (folder / "received").mkdir()
    permitted = {site: entry["classes"] for site, entry in SITES.items()}
    capture = {"CAPTURE_FOLDER": str(folder / "received")}
    with deployed.poc_system(folder, SITES, permitted=permitted, **capture) as system:
        settings = {"num_rounds": 2, "warmup_epochs": 1, "tracking": "tensorboard"}
        job = tiny_job.make(folder / "job", SITES, settings=settings)
        result = deployed.run(system, job)
    received = {
        (site, process): unpacked((folder / "received" / f"{site}{end}").read_bytes())
        for site in SITES
        for process, end in PROCESSES.items()
    }
    return SimpleNamespace(result=result, job=job, received=received, system=system)


def others(content, site):
    """Names of other sites in some bytes."""
    return [name for name in SITES if name != site and names(content, name)]


def classes(content):
    """Names of classes in some bytes."""
    return {name for name in UNION if names(content, name)}


def files(run, site):
    """Path in a site's folder -> content, of all its files."""
    folder = run.system.kit(site)
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder): path.read_bytes() for path in found}


def strings(value):
    """All keys and texts of a configuration."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in [*value, *(value.values() if isinstance(value, dict) else ())]:
            yield from strings(item)


def servers_words(run):
    """Ids, class paths, settings and arguments that stand in the server's configuration alone."""
    paths = (run.job / f"app_{of}/config/config_fed_{of}.json" for of in ("server", "client"))
    server, client = ({*strings(json.loads(path.read_text()))} for path in paths)
    return {word for word in server - client if re.search(r"[._{]", word)} | {"aggregator"}


def test_the_run_was_tracked_and_tested(run):
    assert run.result.status == "FINISHED:COMPLETED"
    assert {path.parent.name for path in run.result.server.rglob("events.out.*")} >= set(SITES)
    assert (run.result.server / "cross_site_val/cross_val_results.json").is_file()


@pytest.mark.parametrize("site", SITES)
def test_a_site_gets_the_names_of_the_classes_that_it_labels_and_of_no_other(run, site):
    assert classes(run.received[site, "job"]) == set(SITES[site]["classes"])
    assert classes(b"\n".join(files(run, site).values())) == set(SITES[site]["classes"])
    received = run.received[site, "parent"]
    assert names(received, "declare_classes")  # it gets the job: archives are looked into
    assert not classes(received)


@pytest.mark.parametrize("site", SITES)
def test_other_sites_are_named_in_the_jobs_meta_alone(run, site):
    """FLARE tells every site who takes part in a job, and the odd keys of their resources."""
    received = run.received[site, "job"]
    assert names(received, site) and not others(received, site)
    meta = json.loads((run.system.kit(site) / run.result.job_id / "meta.json").read_text())
    variables = ["CXR_INITIAL_BODY", "CXR_MODEL", "CXR_SITES"]
    guard = "surgical_aggregation.kit.job_guard.JobFiles"
    groups = (f"surgical_aggregation.{group}" for group in ("strategies", "weightings"))
    packages = {group: ["surgical-aggregation"] for group in (*groups, "cxr_study.backbones")}
    validator = {"path": guard, "args": {"variables": variables, "packages": packages}}
    odd = {"allow_log_streaming": False, "app_validator": validator}
    clients = [{"name": name, "site_config": odd} for name in SITES]
    assert meta["job_clients"] == clients
    received = run.received[site, "parent"]
    for part in ({"deploy_map": meta["deploy_map"]}, *clients):
        packed = msgpack.packb(part)[1:]  # as FLARE does
        assert packed in received
        received = received.replace(packed, b"")
    assert names(received, site) and not others(received, site)
    naming = {str(path) for path, content in files(run, site).items() if others(content, site)}
    assert naming == {f"{run.result.job_id}/meta.json"}


@pytest.mark.parametrize("site", SITES)
def test_a_site_gets_only_those_words_of_the_servers_configuration_that_flare_sends(run, site):
    words = servers_words(run)
    assert {"best_model", "surgical_aggregation.server.access.class_filters.SelectHead"} < words
    for process in PROCESSES:
        received = run.received[site, process]
        assert {word for word in words if names(received, word)} == TOLD[process]
        for word in (str(run.system.server), "body.npz", "permitted"):
            assert not names(received, word), word
    of_job = [data for path, data in files(run, site).items() if path.parts[0] == run.result.job_id]
    content = b"\n".join(of_job)
    assert names(content, "declare_classes")
    assert {word for word in words if names(content, word)} <= TOLD["job"] | TOLD["parent"]
