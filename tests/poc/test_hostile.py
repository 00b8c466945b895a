"""Sites that lie: one about what it trained, one about its classes, two about who they are.

Whatever they send is refused in every round, so the run must end with the model that the two honest
sites make by themselves, to the last bit.
"""

from types import SimpleNamespace

import pytest

import certificates
import deployed
import tiny_job
from cxr_study.deployment import processes
from cxr_study.deployment.flare_session import FlareSession
from cxr_study.deployment.poc_system import PocSystem
from cxr_study.deployment.site_kit import localise_server
from faulty_run import SITES, UNION, FaultyRun, tell, together
from undisturbed import same

HOSTILE = {
    **SITES,
    "west": {"classes": ["Support Devices"], "images": 16},
    "east": {"classes": ["Edema", "Hernia"], "images": 16},
    "guise": {"classes": SITES["north"]["classes"], "images": 16},
}
PERMITTED = {site: entry["classes"] for site, entry in HOSTILE.items()} | {
    "east": ["Hernia"], "guise": ["Pneumothorax"],
}  # fmt: skip
CLAIMS = {"guise": ["north", SITES["north"]["classes"]]}
"""A site with a good certificate of its own, whose job process calls itself by another's name."""

REASONS = {
    "nan": ("NaN", "'dense/kernel' has 12 values that are NaN or infinite"),
    "shape": ("wrong shape", "'dense/kernel' must have shape (3, 4); got (3, 3)"),
    "foreign": ("wrong class", "undeclared ['Pneumonia'], missing []"),
    "truncated": ("truncated result", "missing ['Support Devices']"),
    "corrupted": ("corrupted result", "it could not be read (WireError: "),
}
PLAN = [f"west:{round_}:{what}" for round_, what in enumerate(REASONS)]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, undisturbed):
    """A run, while two impostors knock at the server."""
    folder = tmp_path_factory.mktemp("hostile")
    system = PocSystem(folder / "poc")
    system.prepare(deployed.PROJECT, sites=list(HOSTILE))
    localise_server(system.server, folder / "storage", permitted=PERMITTED, force=True)
    body = str(tiny_job.initial_body(folder / "body.npz"))
    west, state = system.kit("west"), system.server.parents[1] / "state"
    impostors = {
        "expired": certificates.expired(west, state, system.folder / "expired"),
        "forged": certificates.forged(west, system.folder / "forged"),
    }
    try:
        system.start({"CXR_INITIAL_BODY": body})
        with FlareSession(system.lead) as session:
            before = session.sites()
        kits = {"valid": west, **impostors}
        port = system.project.port
        accepted = {name: certificates.accepted(kit, port) for name, kit in kits.items()}
        for kit in impostors.values():
            processes.start(kit, system.environment)
        (run,) = together(FaultyRun(system, folder / "run", HOSTILE, PLAN, claims=CLAIMS))
        log = (system.server / "log.txt").read_text()
        logs = {name: (kit / "log.txt").read_text() for name, kit in impostors.items()}
    finally:
        system.stop()
    return SimpleNamespace(run=run, before=before, accepted=accepted, log=log, logs=logs)


def refused(run, site):
    """Round -> reason, of what a lying site sent."""
    events = [event for part in run.parts for event in part.record if event["event"] == "refused"]
    assert {event["site"] for event in events} == {"west", "east", "guise"}
    return {
        event["round"]: event["reason"]
        for event in events
        if event["site"] == site and event["task"] == "train"
    }


class TestResults:
    @pytest.mark.parametrize(("round_", "what"), list(enumerate(REASONS)))
    def test_is_refused_with_the_reason_and_the_round_goes_on(self, hostile, round_, what):
        fault, reason = REASONS[what]
        assert reason in refused(hostile.run, "west")[round_]
        tell(f"hostile site: {fault}", ended="refused", repeated=0, seconds=0.0, distance=0.0)

    def test_the_run_is_one_job(self, hostile):
        (part,) = hostile.run.parts
        assert part.status == "FINISHED:COMPLETED"

    def test_leaves_no_trace_in_the_models(self, hostile, undisturbed):
        for name in ("last", "best"):
            ours = hostile.run.checkpoint(name)
            assert same(ours, undisturbed.checkpoint(name)), name
            assert sorted(ours.manifest["classes"]) == UNION


class TestClaims:
    def test_a_site_that_claims_anothers_class_is_refused_whole_in_every_round(self, hostile):
        reasons = refused(hostile.run, "east")
        assert set(reasons) == {0, 1, 2, 3, 4}
        assert set(reasons.values()) == {"the site is not permitted to teach ['Edema']"}
        tell("site claims another's class", ended="refused", repeated=0, seconds=0.0, distance=0.0)


class TestIdentity:
    def test_a_site_that_passes_for_another_is_refused_under_its_own_name(self, hostile):
        assert refused(hostile.run, "guise") == dict.fromkeys(range(5), "it calls itself 'north'")
        tell("site passes for another", ended="refused", repeated=0, seconds=0.0, distance=0.0)

    def test_the_victim_teaches_in_every_round(self, hostile):
        """What is left of it in the models is compared above, bit for bit."""
        assert all(hostile.run.trained("north", round_) is not None for round_ in range(5))
        assert "north" in hostile.run.checkpoint("last").manifest["classes"]["Edema"]["sites"]
        assert "guise" not in str(hostile.run.checkpoint("last").manifest)


class TestCertificates:
    def test_the_server_refuses_one_that_is_expired_or_of_another_authority(self, hostile):
        assert hostile.accepted == {"valid": True, "expired": False, "forged": False}

    @pytest.mark.parametrize("impostor", ["expired", "forged"])
    def test_the_impostor_is_never_let_in(self, hostile, impostor):
        assert "Successfully registered client" not in hostile.logs[impostor]
        assert hostile.log.count("New client west@") == 1
        tell(f"{impostor} certificate", ended="not let in", repeated=0, seconds=0.0, distance=0.0)

    def test_the_site_it_pretends_to_be_is_not_disturbed(self, hostile):
        assert hostile.before == set(HOSTILE)
        assert set(refused(hostile.run, "west")) == set(range(len(REASONS)))  # in every round
