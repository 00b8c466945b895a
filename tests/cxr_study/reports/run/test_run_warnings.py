"""What is said of a run beside its figures."""

import numpy as np
import pytest

from cxr_phantom.demo_data import PRETRAINED_BODY
from cxr_study.reports.run.run_warnings import warnings
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load
from surgical_aggregation.wire import variables as wire

FINE = {
    "on_phantom": False, "without_mixed_precision": False, "unvalidated": {"nih": ()},
    "unfinished": (), "look_alikes": (),
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"without_mixed_precision": True}, "the sites computed in float32"),
        ({"unvalidated": {"nih": ["Hernia"], "b": ()}}, "nih: Hernia. The choice of the best"),
        (
            {"look_alikes": ["a (n) and b (s): the same words"]},
            "a (n) and b (s): the same words. Ask",
        ),
        ({"other_splits": ["nih"]}, "nih: the split is not the one of the training"),
        ({"shared_patients": ["3 ids are at a and b"]}, "3 ids are at a and b."),
        ({"unfinished": ("as published", "nih alone")}, "ended: as published and nih alone."),
    ],
)
def test_each_has_its_cause_and_a_fine_run_has_none(changes, said):
    found = [warning.text for warning in warnings(Checkpoint({}), **{**FINE, **changes})]
    assert len(found) == (said is not None) and (said or "") in "".join(found)


def test_a_class_that_no_site_could_teach_does():
    variables = wire.join({}, {"Mass": (np.float32([1]), np.float32([2]))})
    trained = {"sites": ["a"], "lacking": {"a": "negative"}}
    best = Checkpoint(variables, {"classes": {"Mass": trained, "not in the model": trained}})
    (never,) = warnings(best, **FINE)
    assert never.heading == "Never learned."
    assert never.text.startswith("Mass (no site had a negative image).")


@pytest.mark.parametrize("on_phantom", [True, False])
def test_real_images_that_started_from_drawings_do(on_phantom):
    start = load(PRETRAINED_BODY).manifest["initial_body_sha256"]
    best = Checkpoint({}, {"initial_body_sha256": start})
    found = [each.heading for each in warnings(best, **{**FINE, "on_phantom": on_phantom})]
    assert found == ([] if on_phantom else ["Started from drawings."])
