"""The commands that go on from a checkpoint, as typed; whole runs are in tests/simulator."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from cxr_study.cli import checkpoint
from cxr_study.data.sites import site_file
from cxr_study.jobs import job_folder
from cxr_study.runs.finished_run import RUN_FILE
from cxr_study.runs.run_request import Earlier
from cxr_study.runs.simulator_folders import checkpoint_folder
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load, save
from surgical_aggregation.site.site_state import STATE_FILE
from surgical_aggregation.wire import variables as wire

JOB = Path(__file__).parents[3] / "jobs" / "surgical"
COLUMN = (np.ones(2, np.float32), np.ones(1, np.float32))

app = typer.Typer()
app.command("continue", epilog=checkpoint.CONTINUE_EPILOG)(checkpoint.continue_)
app.command("decrypt", epilog=checkpoint.DECRYPT_EPILOG)(checkpoint.decrypt)
app.command("retire", epilog=checkpoint.RETIRE_EPILOG)(checkpoint.retire)


def surgagg(*arguments):
    """Type a command; what it prints. A user's mistake is raised."""
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def started(monkeypatch):
    """Runs that were asked for: [(study, own, title, force), ...]."""
    calls = []
    monkeypatch.setattr(checkpoint, "run_and_report", lambda *a: calls.append(a))
    monkeypatch.setattr(site_file, "read_site_file", lambda path: None)
    return calls


@pytest.fixture
def earlier(tmp_path):
    """A run of 12 rounds on real site files that was interrupted after 5."""
    folder = tmp_path / "earlier"
    job_folder.copy(JOB, folder / "job", sites=["a", "b"], settings={"batch_size": 8})
    (folder / RUN_FILE).write_text(json.dumps({"site_files": "/my/sites"}))
    put_model(folder, round_=5)
    put_model(folder, round_=5, name="best.npz")
    for site in ("a", "b"):
        state = checkpoint_folder(folder / "workspace", site) / STATE_FILE
        state.parent.mkdir(parents=True)
        state.touch()
    return folder


def put_model(folder, round_, workspace="workspace", name="last.npz", **facts):
    path = checkpoint_folder(folder / workspace) / name
    facts = {"job": "simulate_job", "round": round_, "planned_rounds": 12, **facts}
    save(Checkpoint({}, facts), path)


class TestContinue:
    def test_job_sites_and_site_files_are_the_earlier_runs(self, started, earlier, tmp_path):
        surgagg("continue", earlier, "--out", tmp_path / "more")
        ((study, own, title, force),) = started
        assert (study.job, study.folder) == (earlier / "job", tmp_path / "more")
        assert study.sites == ("a", "b") and study.site_files == Path("/my/sites")
        assert study.earlier == Earlier(earlier, "last") and study.initial_body is None
        assert (own, title, force) == (False, "earlier, continued on a, b", False)
        assert {**job_folder.knobs(study.job), **study.settings}["batch_size"] == 8

    def test_everything_can_be_otherwise(self, started, earlier, tmp_path):
        for site in ("a", "c"):
            put_model(earlier, 5, workspace=f"own/{site}", name="best.npz")
        surgagg(
            "continue", earlier, "--out", tmp_path / "more", "--sites", "a, c",
            "--site-files", tmp_path, "--from", "best", "--set", "num_rounds=3",
            "--set", "c:epochs=2", "--own", "--force",
        )  # fmt: skip
        ((study, own, _, force),) = started
        assert study.sites == ("a", "c") and study.site_files == tmp_path
        assert study.earlier.model == "best"
        assert study.settings == {"num_rounds": 3} and study.per_site == {"c": {"epochs": 2}}
        assert own and force

    def test_a_phantom_run_goes_on_with_the_phantom(self, started, earlier):
        (earlier / RUN_FILE).write_text('{"site_files": null}')
        surgagg("continue", earlier)
        assert started[0][0].site_files is None

    def test_an_interrupted_run_gets_the_rounds_that_it_lacks(self, started, earlier):
        text = surgagg("continue", earlier)
        assert started[0][0].settings == {"num_rounds": 7}
        assert text.splitlines()[0].startswith("7 rounds from ")

    def test_rounds_of_the_runs_before_it_are_not_its_own(self, started, earlier):
        put_model(earlier, 25, planned_rounds=32, history=[{"job": "x", "rounds": [0, 20]}])
        surgagg("continue", earlier)
        assert started[0][0].settings == {"num_rounds": 7}

    def test_a_run_that_ended_gets_as_many_rounds_again(self, started, earlier):
        put_model(earlier, 12)
        assert surgagg("continue", earlier).startswith("12 rounds from ")
        assert started[0][0].settings == {}

    def test_from_the_best_model_no_rounds_are_made_up_for(self, started, earlier):
        surgagg("continue", earlier, "--from", "best")
        assert started[0][0].settings == {}

    def test_a_run_that_stopped_early_was_not_interrupted(self, started, earlier):
        put_model(earlier, 5, planned_rounds=5)
        surgagg("continue", earlier)
        assert started[0][0].settings == {}

    def test_says_which_sites_start_without_their_state(self, started, earlier):
        assert "no state" not in surgagg("continue", earlier)
        text = surgagg("continue", earlier, "--sites", "a,c")
        assert "c has no state of the earlier run" in text and "a has no state" not in text
        text = surgagg("continue", earlier, "--from", "best")
        assert text.count("has no state of the earlier run") == 2

    def test_a_run_without_a_model_is_refused_first_of_all(self, started, earlier):
        (checkpoint_folder(earlier / "workspace") / "last.npz").unlink()
        with pytest.raises(ValueError, match=r"run to continue needs .*last\.npz, which is not"):
            surgagg("continue", earlier)
        assert started == []

    def test_what_is_no_run_is_refused(self, started, tmp_path):
        with pytest.raises(
            ValueError, match=r"an earlier `surgagg run` is needed; .* no run\.json"
        ):
            surgagg("continue", tmp_path)
        assert started == []

    @pytest.mark.parametrize("out", [".", ".."])
    def test_the_run_to_continue_is_never_in_the_way(self, started, earlier, out):
        with pytest.raises(ValueError, match="needs a folder of its own"):
            surgagg("continue", earlier, "--out", earlier / out, "--force")
        assert started == [] and (earlier / "job").is_dir()


class TestRetire:
    @pytest.fixture
    def model(self, tmp_path):
        columns = dict.fromkeys(("Edema", "Lung Lesion", "Mass"), COLUMN)
        save(Checkpoint(wire.join({}, columns), {"head_features": 2}), tmp_path / "best.npz")
        return tmp_path / "best.npz"

    def test_writes_a_model_without_the_classes(self, model, tmp_path):
        out = tmp_path / "without.npz"
        before = model.read_bytes()
        text = surgagg("retire", model, "Lung Lesion", "Edema", "--out", out)
        assert wire.classes_of(load(out).variables) == ("Mass",)
        assert model.read_bytes() == before
        assert text.startswith(f"{out}: 1 classes, without Edema, Lung Lesion\n")
        assert "would teach it anew" in text

    def test_overwrites_nothing(self, model):
        before = model.read_bytes()
        with pytest.raises(FileExistsError, match=r"needs a new file; .*best\.npz exists"):
            surgagg("retire", model, "Mass", "--out", model)
        assert model.read_bytes() == before

    def test_an_unknown_class_leaves_no_file(self, model, tmp_path):
        with pytest.raises(ValueError, match=r"got \['Hernia'\]"):
            surgagg("retire", model, "Hernia", "--out", tmp_path / "without.npz")
        assert not (tmp_path / "without.npz").exists()


class TestDecrypt:
    @pytest.fixture
    def kit(self, tmp_path):
        """An encrypted model, and the contexts of a site and of the server."""
        tenseal = pytest.importorskip("tenseal", reason="needs TenSEAL: the extra 'he'")
        from encrypted import provision
        from surgical_aggregation.encryption.ciphertext import pack

        provision(tmp_path)
        context = tenseal.context_from((tmp_path / "client_context.tenseal").read_bytes())
        hidden = [pack(tenseal.ckks_vector(context, part), part) for part in COLUMN]
        save(Checkpoint(wire.join({}, {"Mass": hidden}), {"round": 3}), tmp_path / "best.npz")
        return tmp_path

    def decrypt(self, kit, context):
        plain = kit / "plain.npz"
        surgagg("decrypt", kit / "best.npz", "--context", kit / context, "--out", plain)
        return load(plain)

    def test_a_site_opens_the_model(self, kit):
        model = self.decrypt(kit, "client_context.tenseal")
        np.testing.assert_allclose(model.variables["head/Mass/kernel"], [1, 1], atol=1e-5)
        assert model.manifest["round"] == 3

    def test_a_model_in_plain_is_none_to_open(self, kit):
        save(Checkpoint({"conv/kernel": np.zeros(1)}), kit / "best.npz")
        with pytest.raises(ValueError, match="is not encrypted"):
            self.decrypt(kit, "client_context.tenseal")

    @pytest.mark.parametrize("context", ["server_context.tenseal", "best.npz"])
    def test_the_server_and_other_files_do_not(self, kit, context):
        with pytest.raises(ValueError, match=r"secret key|is no encryption context"):
            self.decrypt(kit, context)
        assert not (kit / "plain.npz").exists()


@pytest.mark.parametrize("command", ["continue", "decrypt", "retire"])
def test_help_has_an_example(command):
    assert f"surgagg {command} " in CliRunner().invoke(app, [command, "--help"]).output


def test_a_folder_that_is_moved_can_still_be_continued(started, earlier, tmp_path):
    shutil.move(earlier, tmp_path / "moved")
    surgagg("continue", tmp_path / "moved")
    assert started[0][0].start(started[0][0].workspace).is_file()
