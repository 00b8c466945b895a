import numpy as np
import pytest

from cxr_study.jobs.network_check import check_network
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save


@pytest.fixture
def check(tmp_path):
    """Checks a body with some facts, or the phantom's, for a job's network."""

    def check(facts, backbone, hidden):
        file = None if facts is None else tmp_path / "body.npz"
        if facts is not None:
            save(Checkpoint({"dense/kernel": np.ones(2)}, facts), file)
        check_network(file, backbone=backbone, hidden=hidden)

    return check


@pytest.mark.parametrize(
    ("facts", "backbone", "hidden"),
    [
        (None, "small_densenet", 0),
        ({"backbone": "densenet121"}, "densenet121", 0),
        ({"backbone": "densenet121", "hidden": 8}, "densenet121", 8),
        ({}, "densenet121", 0),  # does not say of what it is
    ],
)
def test_a_body_of_the_jobs_network_passes(check, facts, backbone, hidden):
    check(facts, backbone, hidden)


@pytest.mark.parametrize(
    ("facts", "backbone", "hidden", "message"),
    [
        (None, "densenet121", 0, "is densenet121 with 0 .* of the phantom is of small_densenet"),
        (None, "small_densenet", 8, "is small_densenet with 8 .* of the phantom is of"),
        ({"backbone": "densenet121", "hidden": 8}, "densenet121", 0, r"npz is of .*121 with 8\. M"),
    ],
)
def test_a_body_of_another_is_refused_by_its_name(check, facts, backbone, hidden, message):
    with pytest.raises(ValueError, match=message):
        check(facts, backbone, hidden)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        check_network(tmp_path / "none.npz", backbone="densenet121", hidden=0)
