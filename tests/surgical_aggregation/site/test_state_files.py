import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save
from surgical_aggregation.site.state_files import (
    PREVIOUS_FILE,
    STATE_FILE,
    SiteState,
    load_state,
    save_state,
    set_aside,
)


def write(folder, *rounds):
    for round_ in rounds:
        save_state(SiteState({"passes": np.array(round_)}, round_, ("Mass",)), folder)


def test_a_state_comes_back_as_it_was(tmp_path):
    training = {"optimizer/0": np.array(7), "personal/bn/gamma": np.ones(2)}
    kept = {2: {"bn/gamma": np.zeros(2)}, 11: {"bn/gamma": np.ones(2)}}
    save_state(SiteState(training, 4, ("Mass", "Edema"), kept), tmp_path)
    back, damaged = load_state(tmp_path)
    assert damaged == {}
    assert (back.round, back.classes) == (4, ("Mass", "Edema"))
    np.testing.assert_equal(dict(back.training), training)
    np.testing.assert_equal(dict(back.kept), kept)


@pytest.mark.parametrize(("variables", "manifest"), [
    ({}, {"round": 1}),
    ({}, {"round": "one", "classes": []}),
    ({}, {"round": 1, "classes": 3}),
    ({"kept/2": np.zeros(1)}, {"round": 1, "classes": []}),
    ({"kept/x/bn": np.zeros(1)}, {"round": 1, "classes": []}),
])  # fmt: skip
def test_another_checkpoint_is_none(tmp_path, variables, manifest):
    save(Checkpoint(variables, manifest), tmp_path / STATE_FILE)
    state, damaged = load_state(tmp_path)
    assert state is None
    assert "no site's state" in str(damaged[STATE_FILE])


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_newest_state_cut_anywhere_is_passed_over_for_the_one_before(tmp_path, data):
    write(tmp_path, 1, 2)
    whole = (tmp_path / STATE_FILE).read_bytes()
    (tmp_path / STATE_FILE).write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    state, damaged = load_state(tmp_path)
    assert state.round == 1 and list(damaged) == [STATE_FILE]


def test_a_damaged_state_set_aside_does_not_take_the_place_of_the_whole_one(tmp_path):
    write(tmp_path, 1, 2)
    (tmp_path / STATE_FILE).write_bytes(b"PK")
    set_aside(tmp_path, load_state(tmp_path)[1])
    assert (tmp_path / "site_state.damaged").read_bytes() == b"PK"
    write(tmp_path, 3)
    assert load_state(tmp_path)[0].round == 3
    assert load_state(tmp_path, 2)[0].round == 1
    for name in (STATE_FILE, PREVIOUS_FILE):
        (tmp_path / name).write_bytes(b"PK")
    state, damaged = load_state(tmp_path)
    assert state is None and list(damaged) == [STATE_FILE, PREVIOUS_FILE]


def test_the_state_before_is_kept_for_a_run_that_goes_back_a_round(tmp_path):
    assert load_state(tmp_path) == (None, {})
    write(tmp_path, 1, 2, 3)
    assert load_state(tmp_path)[0].round == 3
    assert load_state(tmp_path, 2)[0].round == 2
    assert load_state(tmp_path, 1)[0] is None
