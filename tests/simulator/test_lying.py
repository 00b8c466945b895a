"""Impostors, and answers that would end the job, in FLARE's simulator.

All that they send is refused: the run ends with the honest sites' model, bit for bit.
"""

import re

import pytest

import faults
from cxr_study.cli.run import ABSENT as ABSENT_CODE
from cxr_study.evaluation.summary_json import Summary
from secrecy import names
from simulated import TWO, UNDISTURBED, run, same
from typed import answer

LIARS = {
    "east": {"classes": ["Edema"], "images": 8},
    "west": {"classes": ["Edema", "Nodule/Mass"], "images": 8},
    "guest": {"classes": ["Edema", "Hernia"], "images": 8},
}
PERMITTED = {site: entry["classes"] for site, entry in TWO.items()} | {
    "east": ["Edema"], "west": ["Pneumothorax"], "guest": ["Hernia"],
}  # fmt: skip
CLAIMS = {"west": ["north", TWO["north"]["classes"]]}
WAIT = 60
ANSWERS = {
    ("train", 0): ("unsafe", "its policy considers the job unsafe (UNSAFE_JOB)"),
    ("train", 1): ("unknown", "its configuration has no executor for the task (TASK_UNKNOWN)"),
    ("train", 2): ("mismatch", "it did not carry out the task (RUN_MISMATCH)"),
    ("train", 3): ("dates", "'dense/kernel' must be an array of float32; got datetime64[s]"),
    ("train", 4): ("corrupted", "it could not be read (WireError: "),
    ("validate", None): ("text", "'bce' must be a number from 0 to 16.1181; got 'low'"),
    ("test", None): ("pair", "there is no metric ('bce', 'Edema') that the site could report"),
}
"""Task and round -> what east answers, and why that is refused."""


@pytest.fixture(scope="module")
def lied(tmp_path_factory, initial_body):
    """The honest sites, of which south is late at first, and the liars."""
    plan = [f"east:{task if n is None else n}:{what}" for (task, n), (what, _) in ANSWERS.items()]
    return run(
        tmp_path_factory.mktemp("lying") / "run", TWO | LIARS, initial_body,
        plan=[*plan, "south:0:late"], claims=CLAIMS, permitted=PERMITTED,
        **{**UNDISTURBED, "min_clients": 2, "wait_seconds": WAIT},
    )  # fmt: skip


def test_models_and_results_are_those_of_the_honest_sites_bit_for_bit(lied, undisturbed):
    for name in ("last", "best"):
        ours, alone = lied.checkpoint(name), undisturbed.checkpoint(name)
        assert same(ours, alone)
        assert ours.manifest["classes"] == alone.manifest["classes"]
        assert ours.manifest["best"]["sites"] == alone.manifest["best"]["sites"]
    assert {site: lied.measured()[site] for site in TWO} == undisturbed.measured()


def test_an_impostor_is_refused_in_every_task_under_its_own_name(lied):
    reasons = dict.fromkeys([("check", None), *ANSWERS], "it calls itself 'north'")
    assert lied.refused("west") == reasons
    for name in TWO["north"]["classes"]:
        kernel = lied.last.variables[f"head/{name}/kernel"].tobytes()
        assert kernel in lied.received("north")  # with the final model; the search can find it
        assert kernel not in lied.received("west")
        assert not names(lied.received("west"), name)


def test_a_site_that_declares_a_class_without_permission_is_refused_in_every_task(lied):
    reasons = lied.refused("guest")
    assert list(reasons) == [("check", None), *ANSWERS]
    for reason in reasons.values():
        assert re.match(r"the site is not permitted to \w+ \['Edema'\]", reason)


def test_no_answer_of_one_site_ends_the_job_or_disturbs_honest_sites(lied):
    refused = lied.refused("east")
    assert set(refused) == set(ANSWERS)
    assert [task for task, (_, why) in ANSWERS.items() if why not in refused[task]] == []
    for site in TWO:
        assert lied.refused(site) == {}
        assert "ERROR" not in lied.log(site)
    log = lied.log("server")
    summary = log[log.index("the run has ended") :]
    assert "test split of west: not measured: it calls itself 'north'" in summary
    assert "test split of east: not measured: there is no metric ('bce', 'Edema')" in summary


ABSENT = {
    "east": "its policy considers the job unsafe (UNSAFE_JOB)",
    "west": "it calls itself 'north'",
    "guest": "the site is not permitted to train ['Edema']: add them to the server's table, or "
    "remove them from the site's classes",
}
"""Site that is in no round -> the first reason."""


def test_the_record_of_every_round_says_who_is_in_it_and_why_the_others_are_not(lied):
    (sites,) = lied.events("sites")
    assert sites["job"] == sites["deployed"] == sorted(TWO | LIARS)
    rounds = lied.events("round")
    assert [event["accepted"] for event in rounds] == [sorted(TWO)] * 5
    assert rounds[0]["absent"] == ABSENT
    assert lied.log("server").count("results of north, south; without east") == 5


def test_summary_card_and_exit_code_say_who_is_not_in_the_model(lied, tmp_path):
    output = answer("report", lied.workspace, "--out", tmp_path, code=ABSENT_CODE)
    summary = Summary.from_json((tmp_path / "summary.json").read_text())
    assert {s: (of.rounds, of.reason) for s, of in summary.contributions.items()} == {
        **dict.fromkeys(TWO, (((0, 4),), "")), **{s: ((), why) for s, why in ABSENT.items()}
    }  # fmt: skip
    card = (lied.server / "models/model_card.md").read_text()
    best = lied.best.manifest["round"] - 1
    assert f"contributed:** north (rounds 0 to {best}) and south (rounds 0 to {best})." in card
    shown = answer("model", "show", lied.server / "models/best.npz")
    assert f"north (rounds 0 to {best}); south (rounds 0 to {best})" in shown
    for site, why in ABSENT.items():
        assert f"{site} contributed to no round ({why})" in " ".join(output.split())
        assert f"**Absent:** {site} contributed to no round" in card and site not in shown
    assert "north and south; without" in (tmp_path / "report.html").read_text()


def test_a_round_waits_for_a_late_result_and_for_none_that_is_refused(lied):
    """Two are needed: with what the others answer there are more, long before south's."""
    first = lied.events("round")[0]
    assert first["round"] == 0 and WAIT > first["seconds"] > faults.LATE
