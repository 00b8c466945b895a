import numpy as np
import pytest

from cxr_study.deployment.jobs_left import Rounds, copied, rounds_left
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save

MODEL = {
    "round": 9,
    "planned_rounds": 12,
    "history": [{"job": "a", "rounds": [0, 3]}, {"job": "b", "rounds": [3, 5]}],
}


@pytest.fixture
def server(tmp_path):
    """The server's folder of a job that left a model with some manifest."""

    def make(manifest):
        save(Checkpoint({"x": np.zeros(1)}, manifest), tmp_path / "models/last.npz")
        return tmp_path

    return make


class TestRounds:
    @pytest.mark.parametrize(
        ("jobs", "made"), [({"c"}, 4), ({"b", "c"}, 6), ({"a", "b", "c"}, 9), ({"lost", "b"}, 6)]
    )
    def test_are_those_of_the_runs_own_jobs(self, server, jobs, made):
        rounds = rounds_left(server(MODEL), jobs)
        assert rounds == Rounds(made, made + 3) and not rounds.all

    def test_of_a_run_that_continues_nothing_are_all(self, server):
        rounds = rounds_left(server({"round": 5, "planned_rounds": 5}), {"a"})
        assert rounds == Rounds(5, 5) and rounds.all

    def test_of_a_job_that_left_no_model_or_is_not_at_hand_are_not_known(self, tmp_path):
        assert rounds_left(tmp_path, {"a"}) is None is rounds_left(None, {"a"})

    def test_read_well(self):
        assert str(Rounds(2, 5)) == "2 of 5 rounds"
        assert str(Rounds(2, 0)) == "2 of an unknown number of rounds"


class TestCopied:
    @pytest.fixture
    def place(self, tmp_path):
        (tmp_path / "server/job/models").mkdir(parents=True)
        for name in ("models/last.npz", "models/.last.npz.half", "log.txt", "stats.tmp"):
            (tmp_path / "server/job" / name).touch()
        return tmp_path / "server"

    def test_is_laid_out_as_a_download_without_what_comes_and_goes(self, place, tmp_path):
        copy = copied({"server": place}, "job", tmp_path / "results")
        assert copy == tmp_path / "results/job/workspace"
        files = [str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()]
        assert sorted(files) == ["log.txt", "models/last.npz"]

    def test_needs_the_servers_workspace_and_a_job_that_had_begun(self, place, tmp_path):
        assert copied({}, "job", tmp_path) is None
        assert copied({"server": place}, "another", tmp_path) is None
