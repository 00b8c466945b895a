"""The console script, as a person calls it; what it runs is in simulator/test_commands.py."""

import subprocess
import sys
from pathlib import Path

import pytest

from cxr_study.cli import main as cli
from cxr_study.jobs import job_folder
from cxr_study.jobs.job_templates import METHODS
from cxr_study.runs.simulation import SimulationError
from surgical_aggregation import __version__
from typed import typed

ROOT = Path(__file__).parents[3]
JOB = ROOT / "jobs" / "surgical"


class TestJob:
    def test_it_writes_a_folder_with_everything_set(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        call = typed(
            "job", "personalised", "--strategy", "fedbn", "--sites", "a, b", "--preset", "paper",
            "--set", "num_rounds=3", "--set", "b:epochs=2", "--out", "new/job",
        )  # fmt: skip
        assert call.code == 0, call.err
        assert call.out.splitlines() == [
            "job      new/job",
            "submit   nvflare job submit -j new/job",
        ]
        job = tmp_path / "new/job"
        knobs = job_folder.knobs(job, "b")
        wanted = {"strategy": "fedbn", "num_rounds": 3, "patience": 25, "epochs": 2}
        assert {name: knobs[name] for name in wanted} == wanted
        assert job_folder.client_apps(job) == {"a": "app_client", "b": "app_b"}

    def test_what_is_there_is_left_alone(self, tmp_path):
        call = typed("job", "surgical", "--out", tmp_path)
        assert call.code == 2 and str(tmp_path) in call.err
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", METHODS)
def test_a_demo_is_called_as_its_method(method, monkeypatch):
    shown = []
    monkeypatch.setattr(cli, "run_and_report", lambda study, own, title, force: shown.append(title))
    cli.demo(job=ROOT / "jobs" / method)
    assert shown == [f"{METHODS[method].title} on the phantom study"]


OLD = ["--out", "old", "--force"]
MISTAKES = {
    "knob": ["run", JOB, "--set", "num_round=2"],
    "setting": ["run", JOB, "--set", "num_rounds"],
    "kind": ["run", JOB, "--set", "num_rounds=[bold]2"],
    "site's knob": ["run", JOB, "--set", "nhi:seed=2"],
    "preset": ["run", JOB, "--preset", "papers"],
    "body": ["run", JOB, "--preset", "paper"],
    "method": ["job", "surgicl"],
    "strategy": ["job", "surgical", "--strategy", "fedprox"],
    "job": ["run", "jobs/none"],
    "markup": ["run", "[red]jobs"],
    "nih": ["real", "."],
    "in the way of run": ["run", JOB, "--out", "mine"],
    "in the way of real": ["real", ".", "--out", "mine"],
    "forced run": ["run", JOB, "--out", "mine", "--force"],
    "forced real": ["real", ".", "--out", "mine", "--force"],
    "forced demo": ["demo", "--job", JOB, "--out", "mine", "--force"],
    "sites in the way": ["real", ".", "--out", "new", "--force"],
    "old run": ["run", JOB, *OLD, "--set", "x=1"],
    "value": ["run", JOB, *OLD, "--set", "num_rounds=0"],
    "backbone": ["run", JOB, *OLD, "--set", "backbone=foo"],
    "site's value": ["run", JOB, *OLD, "--set", "nih:learning_rate=-1"],
    "sites": ["run", JOB, *OLD, "--sites", "nih,nih"],
    "site file": ["run", JOB, *OLD, "--site-files", "nowhere"],
    "real's images": ["real", ".", *OLD],
    "real's value": ["real", "nih", "--job", JOB, *OLD, "--set", "strategy=fedprox"],
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The folder where the calls of `MISTAKES` are made, with what must stay in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SURGAGG_CACHE", str(tmp_path / "cache"))
    for folder in ("mine", "new-sites"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "thesis.txt").write_text("all of it")
    (tmp_path / "old/job").mkdir(parents=True)
    (tmp_path / "old/job/meta.json").touch()
    (tmp_path / "nih").mkdir()
    (tmp_path / "nih/Data_Entry_2017.csv").touch()
    return tmp_path


class TestMistakes:
    """What a person gets wrong is one line on standard error, and exit code 2."""

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("knob", "job 'surgical' has no knob 'num_round'; nearest known: num_rounds"),
            ("setting", "num_rounds=20, or SITE:KNOB=VALUE; got 'num_rounds'"),
            ("site's knob", "given for site 'nhi', which takes no part; nearest known: nih"),
            ("preset", "there is no preset 'papers'; nearest known: paper"),
            (
                "body",
                "is densenet121 with 0 hidden units; the initial body of the embedded phantom",
            ),
            ("method", "there is no method 'surgicl'; nearest known: surgical"),
            ("strategy", "strategy must be one of ('fedavg', 'fedbn', 'fedbn+'); got 'fedprox'"),
            ("kind", "needs a whole number, as the job's own 12 is; got '[bold]2'"),
            ("job", "jobs/none/meta.json does not exist; a job folder holds"),
            ("markup", "surgagg: [red]jobs/meta.json does not exist"),
            ("nih", "needs Data_Entry_2017*.csv (or .gz) in . for dataset 'nih'; there is none"),
            ("in the way of run", "a run needs a new folder; mine exists"),
            ("in the way of real", "a run needs a new folder; mine exists"),
            ("forced run", "only what an earlier run made is removed; mine holds no job/meta.json"),
            ("forced real", "only what an earlier run made is removed; mine holds no job/meta"),
            ("forced demo", "only what an earlier run made is removed; mine holds no job/meta"),
            ("sites in the way", "new-sites holds no sites/nih-1.yaml. Remove it yourself"),
            ("old run", "has no knob 'x'"),
            ("value", "knob 'num_rounds' must be 1 or more"),
            ("backbone", "knob 'backbone' must be one of"),
            ("site's value", "learning_rate must be 0 or more; got -1"),
            ("sites", "sites need names of letters, digits and -._@, each another; got 'nih', 'n"),
            ("site file", "nowhere/nih.yaml does not exist"),
            ("real's value", "strategy must be one of"),
            ("real's images", "needs Data_Entry_2017*.csv"),
        ],
    )
    def test_is_told_and_nothing_is_made_or_removed(self, home, name, message):
        before = sorted(home.rglob("*"))
        words = MISTAKES[name]
        call = typed(*words, *([] if "--out" in words else ["--out", "mistake"]))
        assert call.code == 2, call.err
        (line,) = call.err.splitlines()
        assert line.startswith("surgagg: ") and message in line
        assert sorted(home.rglob("*")) == before
        assert (home / "mine/thesis.txt").read_text() == "all of it"

    def test_ends_the_process_with_code_2(self, tmp_path):
        script = Path(sys.executable).with_name("surgagg")
        call = subprocess.run(
            [script, "run", JOB, "--set", "num_round=2"],
            cwd=tmp_path, capture_output=True, text=True,
        )  # fmt: skip
        assert call.returncode == 2 and call.stdout == ""
        assert call.stderr.startswith("surgagg: job 'surgical' has no knob 'num_round'; nearest")
        assert len(call.stderr.splitlines()) == 1

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["run", "--nope"], "No such option: --nope"),
            (["job", "surgical"], "Missing option '--out'. See surgagg job --help."),
            (["study", "rum"], "No such command 'rum'"),
        ],
    )
    def test_of_words_that_are_none_of_the_commands_is_told_likewise(self, words, message):
        call = typed(*words)
        assert (call.code, call.out) == (2, "")
        (line,) = call.err.splitlines()
        assert line.startswith("surgagg: ") and message in line
        assert line.endswith(" --help.")


def test_version_is_the_packages():
    call = typed("--version")
    assert (call.code, call.out) == (0, f"{__version__}\n")


def test_a_job_that_fails_is_exit_code_1(monkeypatch, capsys):
    def fail(**_):
        raise SimulationError("the job failed: [nih] no images\nThe log is x.log")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 1
    said = capsys.readouterr().err
    assert said == "surgagg: the job failed: [nih] no images\nThe log is x.log\n"
