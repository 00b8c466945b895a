from pathlib import Path

import numpy as np
import pytest

from cxr_study import initial_body
from cxr_study.initial_body import ChestXrayInitialBody, InitialBodyError, check_network
from surgical_aggregation.checkpoint import Checkpoint, CheckpointError, save


def test_the_configured_file_is_the_one(monkeypatch):
    monkeypatch.setattr(initial_body, "embedded_initial_body", lambda: Path("embedded.npz"))
    assert ChestXrayInitialBody("own.npz").path() == Path("own.npz")


def test_without_a_file_it_is_the_embedded_studys(monkeypatch):
    monkeypatch.setattr(initial_body, "embedded_initial_body", lambda: Path("embedded.npz"))
    for nothing in (None, ""):  # FLARE gives "" for a variable that is not set
        assert ChestXrayInitialBody(nothing).path() == Path("embedded.npz")


class TestCheckNetwork:
    @pytest.fixture
    def file(self, tmp_path):
        def make(**facts):
            save(Checkpoint({"dense/kernel": np.ones(2)}, facts), tmp_path / "body.npz")
            return tmp_path / "body.npz"

        return make

    def test_a_body_of_the_jobs_network_passes(self, file):
        check_network(None, backbone="small_densenet", hidden=0)
        check_network(file(backbone="densenet121"), backbone="densenet121", hidden=0)
        check_network(file(backbone="densenet121", hidden=8), backbone="densenet121", hidden=8)

    def test_a_body_that_does_not_say_of_what_it_is_passes(self, file):
        check_network(file(), backbone="densenet121", hidden=0)

    @pytest.mark.parametrize(("backbone", "hidden"), [("densenet121", 0), ("small_densenet", 8)])
    def test_the_embedded_body_is_refused_for_another_network(self, backbone, hidden):
        with pytest.raises(InitialBodyError, match=rf"{backbone} with {hidden} .* of the embedded"):
            check_network(None, backbone=backbone, hidden=hidden)

    def test_a_file_of_another_network_is_refused_by_its_name(self, file):
        body = file(backbone="densenet121", hidden=8)
        with pytest.raises(InitialBodyError, match=r"body\.npz is of densenet121 with 8\. Make"):
            check_network(body, backbone="densenet121", hidden=0)

    def test_a_missing_file_is_told(self, tmp_path):
        with pytest.raises(CheckpointError, match="does not exist"):
            check_network(tmp_path / "none.npz", backbone="densenet121", hidden=0)
