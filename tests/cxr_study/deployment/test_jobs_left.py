import numpy as np
import pytest

from cxr_study.deployment.jobs_left import Rounds, copied, last_model
from surgical_aggregation.checkpoint import Checkpoint, save

MODEL = {
    "round": 9,
    "planned_rounds": 12,
    "history": [{"job": "a", "rounds": [0, 3]}, {"job": "b", "rounds": [3, 5]}],
}


class TestRounds:
    @pytest.mark.parametrize(
        ("jobs", "made"), [({"c"}, 4), ({"b", "c"}, 6), ({"a", "b", "c"}, 9), ({"lost", "b"}, 6)]
    )
    def test_are_those_of_the_runs_own_jobs(self, jobs, made):
        assert Rounds.of(MODEL, jobs) == Rounds(made, made + 3)

    def test_of_a_run_that_continues_nothing_are_all(self):
        assert Rounds.of({"round": 2, "planned_rounds": 5}, {"a"}) == Rounds(2, 5)

    def test_read_well(self):
        assert (str(Rounds(2, 5)), str(Rounds(2, 0))) == (
            "2 of 5 rounds",
            "2 of an unknown number of rounds",
        )


class TestLastModel:
    def test_is_told_by_its_manifest(self, tmp_path):
        manifest = {"head_features": 4, "round": 3}
        save(Checkpoint({"x": np.zeros(1)}, manifest), tmp_path / "models/last.npz")
        assert manifest.items() <= last_model(tmp_path).items()

    def test_may_not_be_there(self, tmp_path):
        assert last_model(tmp_path) is None is last_model(None)


class TestCopied:
    @pytest.fixture
    def server(self, tmp_path):
        (tmp_path / "server/job/models").mkdir(parents=True)
        for name in ("models/last.npz", "models/.last.npz.half", "log.txt", "stats.tmp"):
            (tmp_path / "server/job" / name).touch()
        return tmp_path / "server"

    def test_is_laid_out_as_a_download_without_what_comes_and_goes(self, server, tmp_path):
        copy = copied({"server": server}, "job", tmp_path / "results")
        assert copy == tmp_path / "results/job/workspace"
        files = [str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()]
        assert sorted(files) == ["log.txt", "models/last.npz"]

    def test_needs_the_servers_workspace_and_a_job_that_had_begun(self, server, tmp_path):
        assert copied({}, "job", tmp_path) is None
        assert copied({"server": server}, "another", tmp_path) is None
