import dataclasses
import errno
import os
from collections import UserList
from datetime import date
from unittest.mock import Mock

import numpy as np
import pytest
from nvflare.app_common.abstract.model import ModelLearnableKey
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType

from flare import Engine, context
from surgical_aggregation import __version__
from surgical_aggregation.checkpoints import checkpoint
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest, load, save
from surgical_aggregation.checkpoints.model_facts import Validation, facts_of
from surgical_aggregation.server.models import model_files
from surgical_aggregation.server.models.global_model import GlobalModel
from surgical_aggregation.server.models.persistor import CheckpointPersistor
from surgical_aggregation.wire import headers
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import AVERAGE, BEST, CANDIDATE

BODY = {"conv/kernel": np.float32([1, 2])}
MOMENTS = {"mean/conv/kernel": np.float32([1, 2])}
COLUMN = (np.float32([3, 4]), np.float32([5]))
FACTS = {"head_features": 2}
MODEL = GlobalModel(wire.join(BODY, {"Nodule/Mass": COLUMN}), {**FACTS, "job": "a"})


def changed(number, **facts):
    """The model with other values and further facts."""
    variables = {**MODEL.variables, "conv/kernel": np.float32([number, number])}
    return GlobalModel(variables, MODEL.manifest.with_facts(**facts))


NEXT, AVERAGED = changed(8, round=2), changed(6, round=4, **{CANDIDATE: AVERAGE})
RECORD = {"round": 1, "metric": "bce", "value": 0.25, "sites": {"a": 0.25}, "classes": {}}
SECOND, OF_AVERAGE = {**RECORD, "round": 2}, {**RECORD, "round": 4, CANDIDATE: AVERAGE}
EARLIER = {**FACTS, "round": 3, "job": "a", "classes": {"Mass": {}}}


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    monkeypatch.setenv("INITIAL_BODY", "")


class Server:
    """The persistor of a job at a server, and the files there."""

    def __init__(self, folder, start=None, continues="", **settings):
        self.folder = folder
        os.environ["INITIAL_BODY"] = str(start)  # the operator's
        self.persistor = CheckpointPersistor(continues=continues, **settings)
        body = model_files.InitialBody(start and str(start))
        self.fl_ctx = context(engine=Engine(folder, initial_body=body))

    def resumed(self):
        """A later job's, from the last model."""
        return Server(self.folder / "later", self.folder / "server/checkpoints/job/last.npz")

    def load(self):
        """Manifest of the model that it starts from."""
        self.model = self.persistor.load(self.fl_ctx)
        return self.model.get(ModelLearnableKey.META)

    def save(self, model=MODEL):
        self.persistor.save(model.to_learnable(), self.fl_ctx)

    def fire(self, event, model=MODEL, **props):
        for name, value in {AppConstants.GLOBAL_MODEL: model.to_learnable(), **props}.items():
            self.fl_ctx.set_prop(name, value, private=True, sticky=False)
        self.persistor.handle_event(event, self.fl_ctx)

    def announce(self, record, model=MODEL):
        """The model in memory is selected as best."""
        self.fire(AppEventType.GLOBAL_BEST_MODEL_AVAILABLE, model, **{BEST: record})

    def validated(self, model=MODEL):
        """The sites have measured the model in memory."""
        self.fire(headers.MODEL_VALIDATED, model)

    def copies(self, name):
        """A model of the job, in its workspace and outside of it."""
        folders = (self.folder / "server/job/models", self.folder / "server/checkpoints/job")
        return [load(folder / name) for folder in folders if (folder / name).exists()]

    def kept(self):
        """Names of files -> body and round of the record of the best model, in both copies."""
        kept = {}
        for name in ("last.npz", "best.npz", "average.npz"):
            for of in self.copies(name):
                best = of.manifest.get("best")
                values = of.variables["conv/kernel"].tolist(), best and best["round"]
                assert kept.setdefault(name[:-4], values) == values
        return kept


@pytest.fixture
def server(tmp_path):
    return Server(tmp_path)


def earlier(folder, record=RECORD, best=RECORD, **facts):
    """An earlier job's last.npz, and its best.npz in the same folder if there is one."""
    save(Checkpoint(BODY, {**EARLIER, "best": record, **facts}, MOMENTS), folder / "last.npz")
    if best is not None:
        other = {"conv/kernel": np.float32([7, 7])}
        save(Checkpoint(other, {**EARLIER, "best": best}), folder / "best.npz")
    return folder / "last.npz"


def test_starts_from_the_checkpoint_and_records_its_digest(tmp_path, panics, logged):
    columns = dict.fromkeys(("Edema", "Mass", "edema"), COLUMN)
    save(Checkpoint(wire.join(BODY, columns), FACTS, MOMENTS), tmp_path / "start.npz")
    server = Server(tmp_path, tmp_path / "start.npz")
    manifest, model = server.load(), GlobalModel.from_learnable(server.model)
    assert list(model.body) == ["conv/kernel"] and list(model.columns) == [*columns]
    facts = {"job": "job", "round": 0, "initial_body_sha256": digest(BODY)}
    assert manifest.items() >= facts.items()
    assert model.moments.keys() == MOMENTS.keys() and not panics
    assert "columns of 'Edema' and 'edema', two spellings of one class" in logged["warning"][0]


@pytest.mark.parametrize(("file", "reason"), [
    (None, "none is configured. Set `file` of the job's InitialBody"),
    ("nowhere.npz", "nowhere.npz' does not exist"),
    ("featureless.npz", "head_features"),
])  # fmt: skip
def test_an_unusable_start_ends_the_run_with_the_reason(tmp_path, panics, file, reason):
    save(Checkpoint(BODY, {}), tmp_path / "featureless.npz")
    Server(tmp_path, file and tmp_path / file).load()
    CheckpointPersistor().load(context(engine=Engine(tmp_path)))
    assert reason in panics[0]
    assert "InitialBody component with id 'initial_body'" in panics[1]


def test_last_and_best_are_in_the_job_and_outside_of_it_and_say_what_made_them(server):
    auroc = {"a": {"Nodule/Mass": 0.75}}
    measured = changed(1, validation={"round": 2, "auroc": auroc})
    server.save(dataclasses.replace(measured, moments=MOMENTS))
    first, second = server.copies("last.npz")
    assert first.manifest == second.manifest and first.manifest["head_features"] == 2
    for copy in (first, second):
        assert list(copy.variables) == list(MODEL.variables) and copy.moments.keys() == {*MOMENTS}
        facts = facts_of(copy)
        assert facts.version == __version__ and date.fromisoformat(facts.created)
        assert facts.validation == Validation(2, auroc)
    assert server.kept() == {"last": ([1, 1], None)}
    server.announce(SECOND)
    server.save(NEXT)
    assert server.kept() == {"best": ([1, 2], 2), "last": ([8, 8], 2)}
    assert len(server.copies("best.npz")) == 2
    server.save()  # the record goes with later models
    assert server.kept()["last"] == ([1, 2], 2)


def test_a_run_killed_before_its_round_ends_leaves_models_that_fit(server, logged):
    server.announce(RECORD)
    server.save()
    server.announce(SECOND, NEXT)  # and no more: it is killed
    assert server.kept() == {"best": ([1, 2], 1), "last": ([1, 2], 1)}
    later = server.resumed()
    later.load()
    assert later.kept() == {"best": ([1, 2], 1)} and logged["warning"] == []


@pytest.fixture
def written(monkeypatch):
    """Names of the checkpoints that are written; the process is killed at the `fatal` ones."""

    def save(model, path):
        if path.name in names.fatal:
            raise KeyboardInterrupt
        names.append(path.name)
        write(model, path)

    names, write = UserList(), model_files.save
    names.fatal = ()
    monkeypatch.setattr(model_files, "save", save)
    return names


def test_killed_between_its_two_files_a_run_finds_its_best_model_again(server, logged, written):
    server.announce(RECORD)
    server.save(NEXT)
    server.announce(SECOND, NEXT)
    written.fatal = ("last.npz",)
    with pytest.raises(KeyboardInterrupt):
        server.save()
    later = server.resumed()
    assert later.load()["round"] == 2  # the round in which it was found, which is made again
    assert later.fl_ctx.get_prop(BEST) is None and later.kept() == {}
    assert "best model, of round 1, is not in the checkpoint's folder" in logged["warning"][0]


@pytest.mark.parametrize("links", [True, False], ids=["hard links", "no hard links"])
def test_a_model_is_written_once(server, tmp_path, written, monkeypatch, links):
    if not links:
        monkeypatch.setattr(os, "link", Mock(side_effect=OSError(errno.EPERM, "not permitted")))
    server.save()
    assert written == ["last.npz"]
    server.announce(RECORD)
    server.save(NEXT)
    assert written[1:] == ["best.npz", "last.npz"]
    server.announce(SECOND, NEXT)
    server.validated()  # the final model is the best one
    assert written[3:] == ["last.npz"]
    files = [*tmp_path.glob("server/*/*/last.npz"), *tmp_path.glob("server/*/*/best.npz")]
    assert len({path.stat().st_ino for path in files}) == (1 if links else 4)
    assert {path.read_bytes() for path in files} == {files[0].read_bytes()} and len(files) == 4
    assert server.kept()["last"] == ([1, 2], 2)
    assert [path.name for path in tmp_path.glob("server/*/*/.*")] == []  # nothing half made


def test_on_a_full_disk_the_run_ends_with_the_reason_and_files_stay(server, monkeypatch, panics):
    def write(file, manifest, variables):
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    server.announce(RECORD)
    server.save()
    monkeypatch.setattr(checkpoint, "_write", write)
    for name in ("last", "best"):
        with pytest.raises(ValueError, match=rf"{name}\.npz' could not .* No space left"):
            server.save()
        server.announce(SECOND)
    server.validated()  # FLARE would log the error of an event and continue
    assert "last.npz' could not be written: No space left on device" in panics[0]
    assert server.kept() == {"best": ([1, 2], 1), "last": ([1, 2], 1)}
    server.resumed().load()
    assert "best.npz' could not be written" in panics[1]  # an earlier run's, which is copied


class TestCandidate:
    """A candidate has its own file, and can be selected as best."""

    def test_it_is_written_beside_the_last_model_which_stays_the_best_unless_it_is(self, server):
        server.save(dataclasses.replace(MODEL, moments=MOMENTS))
        server.validated(AVERAGED)
        assert server.kept() == {"last": ([1, 2], None), "average": ([6, 6], None)}
        server.announce(RECORD)
        server.validated()
        server.validated(AVERAGED)
        final = ([1, 2], 1)
        assert server.kept() == {"last": final, "best": final, "average": ([6, 6], 1)}
        server.announce(OF_AVERAGE, AVERAGED)
        server.validated(AVERAGED)
        best = ([6, 6], 4)
        assert server.kept() == {"last": ([1, 2], 4), "average": best, "best": best}
        assert all(copy.moments.keys() == MOMENTS.keys() for copy in server.copies("last.npz"))

    def test_as_the_best_one_it_is_found_by_the_run_that_goes_on(self, tmp_path, logged):
        """Although the last model is of the same round."""
        record = {**OF_AVERAGE, "round": 3}
        server = Server(tmp_path, earlier(tmp_path, record, record))
        server.load()
        assert server.kept() == {"best": ([7, 7], 3)} and logged["warning"] == []
        Server(tmp_path, earlier(tmp_path / "b", record, None)).load()
        assert "best model, of round 3, is not in the checkpoint's folder" in logged["warning"][0]

    @pytest.mark.parametrize(("fails", "best"), [
        ("save_to_job", ([1, 2], 1)), ("link_in_job", ([6, 6], 4)),
    ])  # fmt: skip
    def test_killed_while_it_becomes_the_best_the_run_goes_on_from_a_best_model(
        self, server, monkeypatch, panics, logged, fails, best
    ):
        server.announce(RECORD)
        server.save()
        server.announce(OF_AVERAGE, AVERAGED)
        write = getattr(model_files, fails)

        def killed(model, name, fl_ctx):
            if name != "average.npz" or fails == "link_in_job":
                raise checkpoint.CheckpointError("killed")
            write(model, name, fl_ctx)

        with monkeypatch.context() as patch:
            patch.setattr(model_files, fails, killed)
            server.validated(AVERAGED)
        assert panics == ["killed"]
        later = server.resumed()
        later.load()
        assert later.kept() == {"best": best} and logged["warning"] == []

    def test_of_the_best_models_round_it_is_not_taken_for_it(self, tmp_path):
        record, start = {**RECORD, "round": 3}, tmp_path / "average.npz"
        earlier(tmp_path, record, best=record)
        save(Checkpoint(BODY, {**EARLIER, "best": record, CANDIDATE: AVERAGE}), start)
        server = Server(tmp_path, start)
        server.load()
        assert server.kept()["best"][0] == [7, 7]


class TestContinue:
    """From an earlier job's last.npz, with or without its best.npz in the same folder."""

    @pytest.mark.parametrize("by_id", [True, False], ids=["by the job's id", "by the file"])
    def test_round_history_moments_and_best_model_continue(self, tmp_path, logged, panics, by_id):
        path = earlier(tmp_path / "server/checkpoints/a")
        earlier(tmp_path / "server/checkpoints/other", round=9)
        server = Server(tmp_path, "nowhere.npz" if by_id else path, "a" if by_id else "")
        manifest = server.load()
        history = [{"job": "a", "rounds": [0, 3]}]
        assert manifest.items() >= {**EARLIER, "job": "job", "history": history}.items()
        assert "best" not in manifest  # it is not a fact of the model
        assert GlobalModel.from_learnable(server.model).moments.keys() == MOMENTS.keys()
        assert server.fl_ctx.get_prop(BEST) == RECORD
        assert server.kept() == {"best": ([7, 7], 1)}
        server.save()
        assert server.kept()["last"] == ([1, 2], 1)
        assert logged["warning"] == [] == panics

    @pytest.mark.parametrize("best", [None, {"round": 2, "value": 0.1}, "damaged", "no job's"])
    def test_a_missing_best_model_is_left_out_with_a_warning(self, tmp_path, logged, best):
        path = earlier(tmp_path, best=best)
        if best == "damaged":
            (tmp_path / "best.npz").write_bytes(b"half")
        if best == "no job's":  # as training alone leaves both
            for name in ("last.npz", "best.npz"):
                save(Checkpoint(BODY, {**FACTS, "round": 3, "best": RECORD}), tmp_path / name)
        server = Server(tmp_path, path)
        assert server.load()["round"] == (0 if best == "no job's" else 3)
        assert server.fl_ctx.get_prop(BEST) is None and server.kept() == {}
        warning = "the earlier run's best model, of round 1, is not in the checkpoint's folder"
        found = [text[: len(warning)] for text in logged["warning"]]
        assert found == [warning] * (best != "no job's")
        server.save()
        assert server.kept() == {"last": ([1, 2], None)}

    def test_the_best_model_itself_needs_no_other_until_it_is_dropped(self, tmp_path, logged):
        server = Server(tmp_path, earlier(tmp_path, {**RECORD, "round": 3}, best=None))
        server.load()
        assert server.fl_ctx.get_prop(BEST)["round"] == 3 and logged["warning"] == []
        assert server.kept() == {"best": ([1, 2], 3)}
        server.announce(SECOND)  # which is not written before it is dropped
        for _ in range(2):  # the second time there is none any more
            server.fire(headers.BEST_DROPPED)
        assert server.kept() == {} and (tmp_path / "last.npz").exists()
        server.save()
        assert server.kept() == {"last": ([1, 2], None)}

    def test_of_several_jobs_it_is_the_first_that_left_a_model(self, tmp_path):
        for round_, job in enumerate("ab"):
            earlier(tmp_path / "server/checkpoints" / job, round=round_)
        for asked, round_ in (("a", 0), ("lost,b,a", 1), ("lost, b", 1)):
            assert Server(tmp_path, "nowhere.npz", asked).load()["round"] == round_

    @pytest.mark.parametrize("job", ["b", "../a", "../checkpoints/a", "/etc", ".", "..", "*", "a/"])
    def test_an_unknown_job_ends_the_run_and_the_newest_are_named(self, tmp_path, panics, job):
        Server(tmp_path, "nowhere.npz", job).load()
        assert f"job {job!r} has no last.npz in" in panics[0]
        assert panics[0].endswith("newest first: none.")
        names = ["a", *(f"job{number:02}" for number in range(11))]
        for second, name in enumerate(names):
            os.utime(earlier(tmp_path / "server/checkpoints" / name), (second, second))
        save(Checkpoint(BODY, {}), tmp_path / "server/checkpoints/b/best.npz")  # another file alone
        save(Checkpoint(BODY, {}), tmp_path / "server/a/last.npz")  # outside
        server = Server(tmp_path, "nowhere.npz", job)
        server.load()
        assert server.model.is_empty()
        assert panics[1].endswith(f"newest first: {', '.join(names[:1:-1])}.")  # ten at most
