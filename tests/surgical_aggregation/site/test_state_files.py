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


def test_a_state_comes_back_as_it_was(tmp_path):
    state = SiteState(
        training={"optimizer/0": np.array(7), "personal/bn/gamma": np.ones(2)},
        round=4,
        classes=("Mass", "Edema"),
        kept={2: {"bn/gamma": np.zeros(2)}, 11: {"bn/gamma": np.ones(2)}},
    )
    save_state(state, tmp_path)
    back, damaged = load_state(tmp_path)
    assert damaged == {}
    assert (back.round, back.classes) == (4, ("Mass", "Edema"))
    assert set(back.training) == set(state.training)
    assert set(back.kept) == {2, 11}
    np.testing.assert_array_equal(back.kept[11]["bn/gamma"], [1, 1])


@pytest.mark.parametrize(
    ("variables", "manifest"),
    [
        ({}, {}),
        ({}, {"round": 1}),
        ({}, {"round": "one", "classes": []}),
        ({}, {"round": 1, "classes": 3}),
        ({"kept/2": np.zeros(1)}, {"round": 1, "classes": []}),
        ({"kept/x/bn": np.zeros(1)}, {"round": 1, "classes": []}),
    ],
)
def test_another_checkpoint_is_none(tmp_path, variables, manifest):
    save(Checkpoint(variables, manifest), tmp_path / STATE_FILE)
    state, damaged = load_state(tmp_path)
    assert state is None
    assert "no site's state" in str(damaged[STATE_FILE])


class TestDamage:
    @pytest.fixture
    def folder(self, tmp_path):
        """States after two rounds and after one."""
        for round_ in (1, 2):
            save_state(SiteState({"passes": np.array(round_)}, round_, ("Mass",)), tmp_path)
        return tmp_path

    @given(st.data())
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_a_newest_state_cut_anywhere_is_passed_over_for_the_one_before(self, folder, data):
        whole = (folder / STATE_FILE).read_bytes()
        cut = data.draw(st.integers(0, len(whole) - 1))
        (folder / STATE_FILE).write_bytes(whole[:cut])
        state, damaged = load_state(folder)
        assert state.round == 1 and list(damaged) == [STATE_FILE]
        (folder / STATE_FILE).write_bytes(whole)

    def test_with_both_damaged_there_is_none(self, folder):
        for name in (STATE_FILE, PREVIOUS_FILE):
            (folder / name).write_bytes(b"PK")
        state, damaged = load_state(folder)
        assert state is None and list(damaged) == [STATE_FILE, PREVIOUS_FILE]

    def test_set_aside_it_does_not_take_the_place_of_the_whole_one(self, folder):
        (folder / STATE_FILE).write_bytes(b"PK")
        set_aside(folder, load_state(folder)[1])
        assert (folder / "site_state.damaged").read_bytes() == b"PK"
        save_state(SiteState({"passes": np.array(3)}, 3, ("Mass",)), folder)
        assert load_state(folder)[0].round == 3
        assert load_state(folder, 2)[0].round == 1


def test_the_state_before_is_kept_for_a_run_that_goes_back_a_round(tmp_path):
    assert load_state(tmp_path) == (None, {})
    for round_ in (1, 2, 3):
        save_state(SiteState({"passes": np.array(round_)}, round_, ("Mass",)), tmp_path)
    assert load_state(tmp_path)[0].round == 3
    assert load_state(tmp_path, 2)[0].round == 2
    assert load_state(tmp_path, 1)[0] is None
