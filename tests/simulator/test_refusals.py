"""A class spelt in two ways by two sites, and a round whose step is not finite."""

import numpy as np
import pytest

from simulated import run

SITES = {
    "north": {"classes": ["Pneumothorax", "Nodule/Mass"], "images": 40},
    "south": {"classes": ["PNEUMOTHORAX", "Fracture"], "images": 24},
    "west": {"classes": ["Fracture"], "images": 16},
}
SPELT = {"north": "Pneumothorax", "south": "PNEUMOTHORAX"}
ROUNDS = 3


@pytest.fixture(scope="module")
def finished(tmp_path_factory, initial_body):
    return run(
        tmp_path_factory.mktemp("refusals") / "run", SITES, initial_body, capture=True,
        plan=["west:1:huge"], num_rounds=ROUNDS, min_clients=1, wait_seconds=60,
        server_optimizer="fedadam", server_learning_rate=0.01,
    )  # fmt: skip


def test_the_first_spelling_stays_and_the_other_is_refused_in_every_round(finished):
    (refused,) = {event["site"] for event in finished.events("refused")}  # whoever was slower
    reasons = finished.refused(refused)
    assert list(reasons) == [("train", round_) for round_ in range(ROUNDS)]
    for reason in reasons.values():
        assert reason.startswith(f"class '{SPELT[refused]}' is known as")
    known = "south" if refused == "north" else "north"
    assert set(finished.last.manifest["classes"]) & set(SPELT.values()) == {SPELT[known]}
    assert SPELT[known].encode() in finished.received(known)


@pytest.mark.parametrize(("site", "other"), [("north", "south"), ("south", "north")])
def test_no_site_learns_how_the_other_spells_it(finished, site, other):
    spelt = SPELT[other].encode()
    assert spelt not in finished.received(site)
    assert [path for path, content in finished.files(site).items() if spelt in content] == []


def test_a_round_that_would_not_stay_finite_is_dropped_and_the_run_goes_on(finished):
    (dropped,) = finished.events("dropped")
    assert dropped["round"] == 1
    assert "came: west 3e+38 in 'dense/kernel'; " in dropped["reason"]
    assert [event["round"] for event in finished.events("round")] == list(range(ROUNDS))
    assert finished.last.manifest["round"] == ROUNDS
    for value in [*finished.last.variables.values(), *finished.last.moments.values()]:
        assert np.isfinite(value).all()
