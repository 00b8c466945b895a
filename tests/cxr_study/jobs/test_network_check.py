import numpy as np
import pytest

from cxr_study.jobs.network_check import InitialBodyError, check_network
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, CheckpointError, save


@pytest.fixture
def file(tmp_path):
    def make(**facts):
        save(Checkpoint({"dense/kernel": np.ones(2)}, facts), tmp_path / "body.npz")
        return tmp_path / "body.npz"

    return make


def test_a_body_of_the_jobs_network_passes(file):
    check_network(None, backbone="small_densenet", hidden=0)
    check_network(file(backbone="densenet121"), backbone="densenet121", hidden=0)
    check_network(file(backbone="densenet121", hidden=8), backbone="densenet121", hidden=8)


def test_a_body_that_does_not_say_of_what_it_is_passes(file):
    check_network(file(), backbone="densenet121", hidden=0)


@pytest.mark.parametrize(("backbone", "hidden"), [("densenet121", 0), ("small_densenet", 8)])
def test_the_embedded_body_is_refused_for_another_network(backbone, hidden):
    with pytest.raises(InitialBodyError, match=rf"{backbone} with {hidden} .* of the phantom"):
        check_network(None, backbone=backbone, hidden=hidden)


def test_a_file_of_another_network_is_refused_by_its_name(file):
    body = file(backbone="densenet121", hidden=8)
    with pytest.raises(InitialBodyError, match=r"body\.npz is of densenet121 with 8\. Make"):
        check_network(body, backbone="densenet121", hidden=0)


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(CheckpointError, match="does not exist"):
        check_network(tmp_path / "none.npz", backbone="densenet121", hidden=0)
