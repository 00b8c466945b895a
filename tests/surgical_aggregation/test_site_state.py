import numpy as np
import pytest

from surgical_aggregation import wire
from surgical_aggregation.checkpoint import Checkpoint, CheckpointError, load, save
from surgical_aggregation.head import LabelledHead
from surgical_aggregation.site_state import (
    STATE_FILE,
    SiteState,
    load_state,
    save_site_model,
    save_state,
)


def test_a_state_comes_back_as_it_was(tmp_path):
    state = SiteState(
        training={"optimizer/0": np.array(7), "personal/bn/gamma": np.ones(2)},
        round=4,
        classes=("Mass", "Edema"),
        kept={2: {"bn/gamma": np.zeros(2)}, 11: {"bn/gamma": np.ones(2)}},
    )
    save_state(state, tmp_path)
    back = load_state(tmp_path)
    assert (back.round, back.classes) == (4, ("Mass", "Edema"))
    assert set(back.training) == set(state.training)
    assert set(back.kept) == {2, 11}
    np.testing.assert_array_equal(back.kept[11]["bn/gamma"], [1, 1])


def test_there_may_be_none(tmp_path):
    assert load_state(tmp_path) is None


def test_another_checkpoint_is_refused(tmp_path):
    save(Checkpoint({"conv/kernel": np.zeros(1)}, {}), tmp_path / STATE_FILE)
    with pytest.raises(CheckpointError, match="no site's state"):
        load_state(tmp_path)


def test_a_sites_model_has_the_form_of_a_global_one(tmp_path):
    head = LabelledHead(("Mass", "Edema"), np.float32([[1, 2]]), np.float32([3, 4]))
    save_site_model({"conv/kernel": np.zeros(1)}, head, {"round": 5}, tmp_path / "model.npz")
    model = load(tmp_path / "model.npz")
    body, columns = wire.split(model.variables)
    assert list(body) == ["conv/kernel"]
    assert columns["Edema"] == (np.float32([2]), np.float32([4]))
    assert model.manifest["head_features"] == 1
    assert model.manifest["round"] == 5


def test_the_state_before_is_kept_for_a_run_that_goes_back_a_round(tmp_path):
    for round_ in (1, 2, 3):
        save_state(SiteState({"passes": np.array(round_)}, round_, ("Mass",)), tmp_path)
    assert load_state(tmp_path).round == 3
    assert load_state(tmp_path, 2).round == 2
    assert load_state(tmp_path, 1) is None
