"""Sites that cannot take part: known before a round, at the lead and at the site."""

import re

import pytest

import tiny_job
from cxr_study.runs.job_results import json_lines
from cxr_study.runs.simulator_process import SimulationError
from secrecy import names
from simulated import Run, plain, run
from surgical_aggregation import __version__
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load, save
from surgical_aggregation.site.local_notes import CANNOT_PARTICIPATE

MAJOR, MINOR, _ = __version__.split(".")
OTHER_MINOR, OTHER_PATCH = f"{MAJOR}.{int(MINOR) + 1}.0", f"{MAJOR}.{MINOR}.999"
OF = f"version of surgical-aggregation is {{}}; the server's is {__version__}, and major and minor"
FAULTS = {
    "class": ({}, r"the site is not permitted to train \['Hernia'\]"),
    "minor": ({"version": OTHER_MINOR}, re.escape(OF.format(OTHER_MINOR))),
    "early": ({"version": None}, re.escape(OF.format("unknown"))),
    "network": ({"layer": "deep"},
                r"e\.g\. \['deep/kernel'\]; backbone is 'tiny' there and 'deep' here\. Start"),
    "disk": ({"free_disk": 9},
             r"it needs 0\.0 MB of disk space for its models .* 0\.0 MB are free"),
    "files": ({"damaged": True}, r"the reason is in local_notes/simulate_job\.txt there"),
}  # fmt: skip
"""Site -> what it pretends, and why the lead reads that it cannot take part."""

OWN = {name: f"Own {name}" for name in FAULTS} | {"class": "Hernia"}
SITES = {
    name: {"classes": ["Edema", OWN[name]], "images": 16, "pretends": pretends}
    for name, (pretends, _) in FAULTS.items()
}
GOOD = {name: {"classes": ["Edema", name], "images": 16} for name in ("Pneumonia", "Pneumonie")}
PERMITTED = {name: [*of["classes"]] for name, of in {**SITES, **GOOD}.items()}
PERMITTED["class"] = ["Edema"]


@pytest.fixture(scope="module")
def body(tmp_path_factory):
    """The tiny network's, by name."""
    path = tiny_job.initial_body(tmp_path_factory.mktemp("body") / "body.npz")
    plain = load(path)
    save(Checkpoint(plain.variables, {**plain.manifest, "backbone": "tiny"}), path)
    return path


@pytest.fixture(scope="module")
def ended(tmp_path_factory, body):
    """A run whose sites cannot take part, but for two, and why it ended."""
    folder = tmp_path_factory.mktemp("ended")
    with pytest.raises(SimulationError) as error:
        run(
            folder / "run", {**SITES, **GOOD}, body, permitted=PERMITTED, min_clients=3,
            num_rounds=1, wait_seconds=60,
        )  # fmt: skip
    return Run(folder / "run"), str(error.value)


def notes(of, site):
    path = of.workspace / site / "local_notes/simulate_job.txt"
    errors = [line for line in json_lines(path) if "kind" in line]
    return "\n".join(f"{error['what']}: {error['reason']}" for error in errors)


@pytest.mark.parametrize("site", FAULTS)
def test_every_fault_is_told_at_once_to_the_lead_and_to_its_site(ended, site):
    (of, message), reason = ended, FAULTS[site][1]
    (failed,) = of.events("failed")
    assert re.search(f"{site}: .{{0,75}}{reason}", failed["reason"]) and not failed["began"]
    assert re.search(reason, message)
    (declared,) = [event for event in of.events("declared") if event["site"] == site]
    assert re.search(reason, declared["reason"])
    own = r"/data/files\.csv, row 7, is damaged" if site == "files" else reason
    assert re.search(f"{CANNOT_PARTICIPATE}: .*{own}", notes(of, site))
    others = [name for name in {**SITES, **GOOD} if name != site]
    assert not any(re.search(own, notes(of, name)) for name in others)


def test_nothing_was_trained_and_look_alikes_were_named(ended):
    of, _ = ended
    assert of.events("round") == [] == list(of.workspace.rglob("site_state.npz"))
    assert "accepted: Pneumonia, Pneumonie;" in of.events("failed")[0]["reason"]
    assert [sorted(event["classes"]) for event in of.events("look_alike")] == [list(GOOD)]
    assert "/data/" not in of.log("server")


@pytest.mark.parametrize("site", [*SITES, *GOOD])
def test_no_column_no_value_and_no_class_of_another_site_goes_out(ended, body, site):
    received = ended[0].received(site)
    assert b"dense/kernel" in received  # the search can find a name
    assert b"head/" not in received
    assert load(body).variables["dense/kernel"].tobytes()[:12] not in received
    classes = {*OWN.values(), *GOOD} - {*({**SITES, **GOOD}[site]["classes"])}
    assert [name for name in sorted(classes) if names(received, name)] == []


def test_where_enough_remain_the_run_goes_on_and_other_versions_are_named(tmp_path, body):
    sites = {
        "minor": SITES["minor"],
        "patch": {**GOOD["Pneumonia"], "pretends": {"version": OTHER_PATCH}},
        "same": {"classes": ["Edema"], "images": 16},
    }
    of = run(tmp_path / "run", sites, body, num_rounds=1, wait_seconds=60, min_clients=2)
    assert of.last.manifest["round"] == 1
    assert set(of.last.manifest["versions"]) == {"patch", "same"}
    assert of.last.manifest["versions"]["patch"] == {"surgical-aggregation": OTHER_PATCH}
    assert of.last.manifest["classes"]["Edema"]["sites"] == ["patch", "same"]
    named = f"surgical-aggregation {__version__} (server, same), {OTHER_PATCH} (patch)"
    assert named in of.log("server")
    versions = {event["site"]: event["versions"] for event in of.events("declared")}
    assert versions["patch"]["surgical-aggregation"] == OTHER_PATCH


@pytest.mark.parametrize("job", ["personalised", "evaluation"])
def test_a_check_alone_ends_well_and_makes_nothing(tmp_path, body, job):
    sites = {"one": GOOD["Pneumonia"], "two": GOOD["Pneumonie"]}
    made = tiny_job.make(tmp_path, sites, job=job, settings={"check_only": True})
    of = plain(made, tmp_path, sites, CXR_MODEL=str(body), CXR_INITIAL_BODY=str(body))
    reasons = {event["site"]: event["reason"] for event in of.events("declared")}
    assert reasons == dict.fromkeys(sites)
    named = {event["event"] for event in of.record}
    assert named <= {"started", "sites", "declared", "look_alike", "ended"}
    assert list(of.workspace.rglob("*.npz")) == []
