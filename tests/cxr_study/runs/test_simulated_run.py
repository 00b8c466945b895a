"""The order of a run's steps; whole runs in FLARE's simulator are in test_cli."""

import io
import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from cxr_study.data.sites import site_file
from cxr_study.data.sites.patient_split import SplitError
from cxr_study.jobs import job_folder, job_templates
from cxr_study.runs import simulated_run
from cxr_study.runs.finished_run import RUN_FILE, checkpoint_folder
from cxr_study.runs.run_request import RunRequest
from cxr_study.runs.simulated_run import run
from cxr_study.runs.simulator_process import SimulationError
from surgical_aggregation.site.state_files import STATE_FILE

PREPARE = simulated_run.prepare
JOB = Path(__file__).parents[3] / "jobs" / "surgical"


@pytest.fixture
def happens():
    """Further events of a run."""
    return []


@pytest.fixture
def simulated(monkeypatch, happens):
    """Calls to the simulator, which runs nothing."""
    calls = []

    def simulate(job, workspace, sites, *, environment, states, watch):
        calls.append(SimpleNamespace(job=job, workspace=workspace, sites=tuple(sites),
                                     environment=environment, states=states))  # fmt: skip
        watch([{"event": "round"}, {"event": "best", "value": 0.5}, *happens])

    monkeypatch.setattr(simulated_run, "simulate", simulate)
    return calls


@pytest.fixture(autouse=True)
def phantom(monkeypatch):
    """How often the phantom was asked for."""
    asked = []
    monkeypatch.setattr(site_file, "read_site_file", lambda path: None)
    monkeypatch.setattr(simulated_run, "prepare", lambda site_files, sites, size: None)
    monkeypatch.setattr(simulated_run, "demo_study", lambda: asked.append("phantom"))
    return asked


@pytest.fixture
def study(tmp_path):
    def make(**changes):
        values = {
            "job": JOB,
            "folder": tmp_path / "run",
            "sites": ("nih", "chexpert"),
            "site_files": tmp_path / "sites",
            "initial_body": tmp_path / "body.npz",
            "settings": {"num_rounds": 2, "learning_rate": 0.5},
        }
        return RunRequest(**{**values, **changes})

    return make


def go(study, local_models=False):
    run(study, local_models=local_models, console=Console(quiet=True))


class TestRun:
    def test_the_job_is_a_copy_with_the_settings_and_the_marker(
        self, study, simulated, phantom, tmp_path
    ):
        job_templates.write("surgical", tmp_path / "mine", "installed")
        go(study(job=tmp_path / "mine"))
        (call,) = simulated
        assert (call.job, call.workspace) == (tmp_path / "run/job", tmp_path / "run/workspace")
        assert call.sites == job_folder.sites(call.job) == ("nih", "chexpert")
        settings = job_folder.read_settings(call.job)
        assert (settings["num_rounds"], settings["learning_rate"]) == (2, 0.5)
        assert len(list(call.job.glob("*/custom/README.txt"))) == 2
        assert call.environment == {
            "CXR_SITES": str(tmp_path / "sites"),
            "CXR_INITIAL_BODY": str(tmp_path / "body.npz"),
        }
        assert call.states == {} and phantom == []
        facts = json.loads((tmp_path / "run" / RUN_FILE).read_text())
        assert facts == {"site_files": str(tmp_path / "sites")}

    def test_the_phantom_is_made_and_on_record(
        self, study, simulated, phantom, monkeypatch, tmp_path
    ):
        monkeypatch.chdir(tmp_path)  # relative paths hold wherever a site works
        go(study(site_files=None, initial_body=Path("body.npz")))
        body = str(tmp_path / "body.npz")
        assert phantom == ["phantom"] and simulated[0].environment == {"CXR_INITIAL_BODY": body}
        assert json.loads((tmp_path / "run" / RUN_FILE).read_text()) == {"site_files": None}

    def test_alone_a_site_runs_the_same_job_without_waiting_for_another(self, study, simulated):
        go(study(), local_models=True)
        alone = {call.sites: call.job for call in simulated[1:]}
        assert set(alone) == {("nih",), ("chexpert",)}
        federated = job_folder.read_settings(simulated[0].job)
        for sites, job in alone.items():
            settings = job_folder.read_settings(job)
            assert job_folder.sites(job) == sites
            assert settings["min_clients"] == 1 and settings["threads"] >= 1
            assert {**settings, "min_clients": 2, "threads": 0} == federated

    @pytest.mark.parametrize(("last", "said"), [("ended", ""), ("stopped", ", stopped early")])
    def test_without_a_terminal_every_round_is_a_line(self, study, simulated, happens, last, said):
        happens.append({"event": last})
        text = io.StringIO()
        run(study(), local_models=False, console=Console(file=text, width=120))
        line = text.getvalue().splitlines()[0]
        assert line == f"federated run: round 1/2, best validation BCE 0.5000{said}"

    def test_sites_that_share_patients_are_told_before_anything_is_made(
        self, study, simulated, monkeypatch, tmp_path
    ):
        monkeypatch.setattr(simulated_run, "prepare", PREPARE)
        (tmp_path / "sites").mkdir()
        (tmp_path / "sites/labels.csv").write_text("image,patient,Mass\na.png,1,1\nb.png,2,0\n")
        (tmp_path / "sites/split.csv").write_text("patient,split\n1,train\n2,test\n")
        for site in ("nih", "chexpert"):
            (tmp_path / f"sites/{site}.yaml").write_text(
                "dataset: table\nlabels: labels.csv\nimages: .\nsplit: split.csv\n"
            )
        with pytest.raises(SplitError, match="a patient belongs to one site; 2 are at both"):
            go(study())
        assert simulated == [] and not (tmp_path / "run").exists()

    def test_a_site_alone_that_fails_stops_the_others(self, study, monkeypatch):
        begun = threading.Barrier(2, timeout=60)
        finished = []

        def simulate(job, workspace, sites, *, environment, states, watch):
            if len(sites) == 2:
                return
            begun.wait()
            if sites == ("nih",):
                raise SimulationError("no disk")
            for _ in range(100):
                watch([])
                time.sleep(0.1)
            finished.append(sites)

        monkeypatch.setattr(simulated_run, "simulate", simulate)
        with pytest.raises(SimulationError, match="no disk"):
            go(study(), local_models=True)
        assert finished == []

    def test_on_the_phantom_all_jobs_run_side_by_side(self, study, monkeypatch):
        begun = threading.Barrier(3, timeout=60)  # breaks where one waits for another's end
        monkeypatch.setattr(simulated_run, "simulate", lambda *_, **__: begun.wait())
        go(study(site_files=None), local_models=True)

    def test_on_a_hospitals_data_the_federation_has_the_machine_for_itself(
        self, study, monkeypatch
    ):
        ended = []

        def simulate(job, workspace, sites, **_):
            assert len(sites) == 2 or ("nih", "chexpert") in ended
            ended.append(sites)

        monkeypatch.setattr(simulated_run, "simulate", simulate)
        go(study(), local_models=True)
        assert len(ended) == 3


class TestContinue:
    @pytest.fixture
    def earlier(self, tmp_path):
        """A run in which nih and chexpert took part, and nih alone too."""
        folder = tmp_path / "earlier"
        for workspace in (folder / "workspace", folder / "local" / "nih"):
            checkpoint_folder(workspace).mkdir(parents=True)
            for site in ("nih", "chexpert"):
                checkpoint_folder(workspace, site).mkdir(parents=True)
                (checkpoint_folder(workspace, site) / STATE_FILE).touch()
        return folder

    def test_it_starts_from_the_last_model_and_sites_restore_the_state_that_they_have(
        self, study, simulated, earlier
    ):
        go(study(earlier=earlier, initial_body=None, sites=("nih", "mimic")))
        start, state = (checkpoint_folder(earlier / "workspace", *site) for site in ((), ("nih",)))
        assert simulated[0].environment["CXR_INITIAL_BODY"] == str(start / "last.npz")
        assert simulated[0].states == {"nih": state}

    def test_from_the_best_model_every_site_starts_afresh(self, study, simulated, earlier):
        go(study(earlier=earlier, model="best"))
        assert simulated[0].environment["CXR_INITIAL_BODY"].endswith("best.npz")
        assert simulated[0].states == {}

    def test_a_site_alone_continues_its_own_run(self, study, simulated, earlier):
        only_nih = {"sites": ("nih",), "settings": {"min_clients": 1}}
        go(study(earlier=earlier, **only_nih), local_models=True)
        own = earlier / "local" / "nih"
        start = simulated[1].environment["CXR_INITIAL_BODY"]
        assert start == str(checkpoint_folder(own) / "last.npz")
        assert simulated[1].states == {"nih": checkpoint_folder(own, "nih")}
