"""Best and last model on disk, inside and outside the job's workspace."""

import dataclasses
import errno

import numpy as np
import pytest
from nvflare.app_common.abstract.model import ModelLearnableKey
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from flare import Engine, context
from surgical_aggregation.checkpoints import checkpoint
from surgical_aggregation.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointError,
    digest,
    load,
    save,
)
from surgical_aggregation.server.models.global_model import (
    GlobalModel,
    from_learnable,
    to_learnable,
)
from surgical_aggregation.server.models.model_files import InitialBody
from surgical_aggregation.server.models.persistor import CheckpointPersistor
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import BEST, BEST_DROPPED

BODY = {"conv/kernel": np.float32([1, 2])}
MOMENTS = {"mean/conv/kernel": np.float32([1, 2])}
COLUMN = (np.float32([3, 4]), np.float32([5]))
FACTS = {"head_features": 2}
MODEL = GlobalModel(wire.join(BODY, {"Nodule/Mass": COLUMN}), {**FACTS, "job": "a"})
RECORD = {"round": 1, "metric": "bce", "value": 0.25, "sites": {"a": 0.25}, "classes": {}}
EARLIER = {**FACTS, "round": 3, "job": "a", "classes": {"Mass": {}}}


class Server:
    """The persistor of a job at a server, and the files there."""

    def __init__(self, folder, start=None, continues=""):
        self.folder = folder
        self.persistor = CheckpointPersistor(continues=continues)
        self.fl_ctx = context(engine=Engine(folder, initial_body=InitialBody(start and str(start))))

    def load(self):
        """Manifest of the model that it starts from."""
        self.model = self.persistor.load(self.fl_ctx)
        return self.model.get(ModelLearnableKey.META)

    def save(self, model=MODEL):
        self.persistor.save(to_learnable(model), self.fl_ctx)

    def announce(self, record):
        """The model in memory is the best one."""
        model = to_learnable(MODEL)
        self.fl_ctx.set_prop(AppConstants.GLOBAL_MODEL, model, private=True, sticky=False)
        self.fl_ctx.set_prop(BEST, record, private=True, sticky=False)
        self.persistor.handle_event(AppEventType.GLOBAL_BEST_MODEL_AVAILABLE, self.fl_ctx)

    def copies(self, name):
        """A model of the job where it is: in its workspace and outside of it."""
        folders = (self.folder / "server/job/models", self.folder / "server/checkpoints/job")
        return [load(folder / name) for folder in folders if (folder / name).exists()]

    def records(self, name):
        return [copy.manifest.get("best") for copy in self.copies(name)]

    def kernels(self, name):
        return [copy.variables["conv/kernel"].tolist() for copy in self.copies(name)]


def earlier(folder, record=RECORD, best=RECORD, **facts):
    """An earlier job's last.npz, and its best.npz beside it where there is one."""
    save(Checkpoint(BODY, {**EARLIER, "best": record, **facts}, MOMENTS), folder / "last.npz")
    if best is not None:
        other = {"conv/kernel": np.float32([7, 7])}
        save(Checkpoint(other, {**EARLIER, "best": best}), folder / "best.npz")
    return folder / "last.npz"


class TestLoad:
    def test_starts_from_the_checkpoint_and_records_its_digest(self, tmp_path, panics):
        path = tmp_path / "start.npz"
        save(Checkpoint(wire.join(BODY, {"Edema": COLUMN}), FACTS, MOMENTS), path)
        server = Server(tmp_path, path)
        manifest = server.load()
        model = from_learnable(server.model)
        assert list(model.body) == ["conv/kernel"] and list(model.columns) == ["Edema"]
        assert (manifest["job"], manifest["round"]) == ("job", 0)
        assert manifest["initial_body_sha256"] == digest(BODY)
        assert model.moments.keys() == MOMENTS.keys() and not panics

    @pytest.mark.parametrize(
        ("file", "reason"),
        [
            (None, "surgagg model init"),
            ("nowhere.npz", "nowhere.npz' does not exist"),
            ("featureless.npz", "head_features"),
        ],
    )
    def test_an_unusable_start_ends_the_run_with_the_reason(self, tmp_path, panics, file, reason):
        save(Checkpoint(BODY, {}), tmp_path / "featureless.npz")
        Server(tmp_path, file and tmp_path / file).load()
        CheckpointPersistor().load(context(engine=Engine(tmp_path)))
        assert reason in panics[0]
        assert "InitialBody component with id 'initial_body'" in panics[1]

    def test_a_model_with_a_class_spelt_twice_is_opened_and_told_of(self, tmp_path, logged):
        variables = wire.join(BODY, {"Edema": COLUMN, "Mass": COLUMN, "edema": COLUMN})
        save(Checkpoint(variables, FACTS), tmp_path / "start.npz")
        server = Server(tmp_path, tmp_path / "start.npz")
        server.load()
        assert sorted(from_learnable(server.model).columns) == ["Edema", "Mass", "edema"]
        assert "columns of 'Edema' and 'edema', which are one class" in logged["warning"][0]


class TestSave:
    def test_last_is_in_the_job_and_outside_of_it_with_its_moments(self, tmp_path):
        server = Server(tmp_path)
        server.save(dataclasses.replace(MODEL, moments=MOMENTS))
        for copy in server.copies("last.npz"):
            assert list(copy.variables) == list(MODEL.variables)
            assert copy.manifest["head_features"] == 2 and copy.moments.keys() == MOMENTS.keys()
        assert len(server.copies("last.npz")) == 2

    def test_best_is_written_when_announced_and_its_record_goes_with_later_models(self, tmp_path):
        server = Server(tmp_path)
        server.save()
        assert server.copies("best.npz") == []
        server.announce({"round": 4, "value": 0.1})
        for name in ("best.npz", "last.npz"):
            assert server.records(name) == [{"round": 4, "value": 0.1}] * 2
        server.save()
        assert server.records("last.npz") == [{"round": 4, "value": 0.1}] * 2


class TestFullDisk:
    @pytest.fixture
    def server(self, tmp_path, monkeypatch):
        """One that has written a best model, and whose disk is full now."""

        def write(file, manifest, variables):
            file.write(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")

        server = Server(tmp_path)
        server.announce({"round": 4})
        monkeypatch.setattr(checkpoint, "_write", write)
        return server

    def test_a_round_ends_the_run_with_the_file_and_the_reason(self, server):
        with pytest.raises(CheckpointError, match=r"last\.npz' could not .* No space left"):
            server.save()
        assert server.records("last.npz") == [{"round": 4}] * 2

    def test_a_best_model_ends_the_run_too_for_flare_would_go_on(self, server, panics, tmp_path):
        server.announce({"round": 5})
        assert "best.npz' could not be written: No space left on device" in panics[0]
        assert server.records("best.npz") == [{"round": 4}] * 2
        Server(tmp_path, tmp_path / "server/checkpoints/job/last.npz").load()
        assert "best.npz' could not be written" in panics[1]  # an earlier run's, which is copied


class TestContinue:
    """From an earlier job's last.npz, with or without its best.npz beside it."""

    @pytest.mark.parametrize("by_id", [True, False], ids=["by the job's id", "by the file"])
    def test_all_goes_on_until_a_better_model_comes(self, tmp_path, logged, panics, by_id):
        path = earlier(tmp_path / "server/checkpoints/a")
        earlier(tmp_path / "server/checkpoints/other", round=9)
        server = Server(tmp_path, "nowhere.npz" if by_id else path, "a" if by_id else "")
        manifest = server.load()
        assert (manifest["round"], manifest["job"]) == (3, "job")
        assert manifest["classes"] == {"Mass": {}}
        assert manifest["history"] == [{"job": "a", "rounds": [0, 3]}]
        assert "best" not in manifest  # it is not a fact of the model
        assert from_learnable(server.model).moments.keys() == MOMENTS.keys()
        assert server.fl_ctx.get_prop(BEST) == RECORD
        assert server.records("best.npz") == [RECORD] * 2
        assert server.kernels("best.npz") == [[7, 7]] * 2
        server.save()
        assert server.records("last.npz") == [RECORD] * 2
        server.announce({"round": 4})
        assert server.kernels("best.npz") == [[1, 2]] * 2
        assert logged["warning"] == [] == panics

    def test_the_best_model_of_a_checkpoint_that_no_job_wrote_is_not_this_runs(self, tmp_path):
        for name in ("last.npz", "best.npz"):  # as training alone leaves them
            save(Checkpoint(BODY, {**FACTS, "round": 3, "best": RECORD}), tmp_path / name)
        server = Server(tmp_path, tmp_path / "last.npz")
        assert server.load()["round"] == 0
        assert server.fl_ctx.get_prop(BEST) is None and server.copies("best.npz") == []

    @pytest.mark.parametrize("best", [None, {"round": 2, "value": 0.1}, "damaged"])
    def test_without_it_the_run_starts_without_and_says_so(self, tmp_path, logged, best):
        path = earlier(tmp_path, best=best)
        if best == "damaged":
            (tmp_path / "best.npz").write_bytes(b"half")
        server = Server(tmp_path, path)
        server.load()
        assert server.fl_ctx.get_prop(BEST) is None and server.copies("best.npz") == []
        assert "best model, of round 1, is not beside the checkpoint" in logged["warning"][0]
        server.save()
        assert server.records("last.npz") == [None] * 2

    def test_a_checkpoint_that_is_the_best_model_itself_needs_none_beside_it(
        self, tmp_path, logged
    ):
        server = Server(tmp_path, earlier(tmp_path, {**RECORD, "round": 3}, best=None))
        server.load()
        assert server.fl_ctx.get_prop(BEST)["round"] == 3 and logged["warning"] == []
        assert server.kernels("best.npz") == [[1, 2]] * 2
        server.persistor.handle_event(BEST_DROPPED, server.fl_ctx)  # it cannot be compared
        assert server.copies("best.npz") == [] and (tmp_path / "last.npz").exists()
        server.save()
        assert server.records("last.npz") == [None] * 2

    @pytest.mark.parametrize("job", ["b", "../a", "../checkpoints/a", "/etc", ".", "..", "*", "a/"])
    def test_what_is_no_earlier_job_ends_the_run_with_those_that_are(self, tmp_path, panics, job):
        earlier(tmp_path / "server/checkpoints/a")
        save(Checkpoint(BODY, {}), tmp_path / "server" / "a" / "last.npz")  # outside
        server = Server(tmp_path, "nowhere.npz", job)
        server.load()
        assert server.model.is_empty() and f"{job!r} left none in" in panics[0]
        assert panics[0].endswith("the newest first: a.")
