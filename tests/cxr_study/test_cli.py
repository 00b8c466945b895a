"""The console script, as a person calls it; `runs` are two whole studies in FLARE's simulator."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from cxr_study import cli, job_folder
from cxr_study.class_sets import published
from cxr_study.jobs import METHODS
from cxr_study.phantom import write_phantom
from cxr_study.report.summary import Summary
from cxr_study.simulation import SimulationError
from cxr_study.simulator_folders import server_folder
from cxr_study.split_file import read_split
from surgical_aggregation import __version__
from typed import typed

ROOT = Path(__file__).parents[2]
JOB = ROOT / "jobs" / "surgical"
MINI = ROOT.parent / "shared" / "data" / "nih-mini"
SMALL = ["--set", "num_rounds=2", "--set", "image_size=32", "--set", "warmup_epochs=1"]

needs_data = pytest.mark.skipif(not MINI.is_dir(), reason=f"no NIH images in {MINI}")


@pytest.fixture(scope="session")
def surgagg(tmp_path_factory):
    """Call the console script in a folder of its own with a cache of its own."""
    home = tmp_path_factory.mktemp("surgagg")
    script = Path(sys.executable).with_name("surgagg")
    environment = {**os.environ, "SURGAGG_CACHE": str(home / "cache"), "COLUMNS": "100"}

    def call(*arguments):
        done = subprocess.run(
            [script, *map(str, arguments)],
            cwd=home,
            env=environment,
            capture_output=True,
            text=True,
        )
        return SimpleNamespace(code=done.returncode, out=done.stdout, err=done.stderr)

    call.home = home
    return call


@pytest.fixture(scope="session")
def initial_body(surgagg):
    call = surgagg(
        "init", "initial.npz", "--backbone", "small_densenet", "--weights", "none",
        "--image-size", 32,
    )  # fmt: skip
    assert call.code == 0, call.err
    return surgagg.home / "initial.npz"


@pytest.fixture(scope="session")
def runs(surgagg, initial_body):
    """Side by side: a phantom study with each site alone, and a study on real images."""
    write_phantom(surgagg.home / "phantom", images_per_site=120, size=32)
    with ThreadPoolExecutor() as pool:
        phantom = pool.submit(
            surgagg, "run", JOB, "--site-files", "phantom/sites", "--initial-body", initial_body,
            "--own", "--out", "runs/phantom", *SMALL, "--set", "nih:learning_rate=2e-3",
        )  # fmt: skip
        real = None
        if MINI.is_dir():
            real = pool.submit(
                surgagg, "real", MINI, "--job", JOB, "--initial-body", initial_body, "--no-own",
                "--out", "runs/real", "--set", "num_rounds=3", "--set", "image_size=32",
            )  # fmt: skip
        return SimpleNamespace(
            phantom=finished(phantom.result(), surgagg.home / "runs/phantom"),
            real=real and finished(real.result(), surgagg.home / "runs/real"),
        )


def finished(call, folder):
    assert call.code == 0, call.err
    summary = Summary.from_json((folder / "report" / "summary.json").read_text())
    html = (folder / "report" / "report.html").read_text()
    return SimpleNamespace(out=call.out, folder=folder, summary=summary, html=html)


@pytest.mark.simulator
@pytest.mark.keras
class TestRun:
    def test_it_says_the_table_and_where_everything_is(self, runs):
        lines = runs.phantom.out.splitlines()
        assert any("Mean AUROC on each site's test split" in line for line in lines)
        assert any(line.startswith("│ chexpert") for line in lines)
        for what, path in {
            "report": "runs/phantom/report/report.html",
            "summary": "runs/phantom/report/summary.json",
            "models": "runs/phantom/workspace/server/checkpoints/simulate_job",
        }.items():
            assert f"{what:8} {path}" in lines
            assert (runs.phantom.folder.parents[1] / path).exists()

    def test_aurocs_of_held_classes_are_those_that_the_sites_measured(self, runs):
        path = server_folder(runs.phantom.folder / "workspace") / "cross_site_val"
        measured = json.loads((path / "cross_val_results.json").read_text())
        compared = 0
        for row in runs.phantom.summary.test:
            if row.model == "global" and row.held:
                federated = measured[row.site]["SRV_best"].get(f"auroc/{row.class_name}")
                assert row.auroc == pytest.approx(federated, abs=1e-6), row
                compared += row.auroc is not None
        assert compared > 10

    def test_rounds_are_those_of_the_run_and_the_final_model(self, runs):
        summary = runs.phantom.summary
        assert [entry.round for entry in summary.rounds] == [0, 1, 2]
        assert all(set(entry.sites) == {"nih", "chexpert"} for entry in summary.rounds)
        assert summary.num_rounds == 2 and summary.image_size == 32

    def test_each_site_alone_knows_its_own_classes(self, runs):
        own = {
            site: {row.class_name for row in runs.phantom.summary.test if row.model == "own"
                   and row.site == site and row.auroc is not None}
            for site in ("nih", "chexpert")
        }  # fmt: skip
        for site, classes in own.items():
            assert classes and classes <= set(runs.phantom.summary.sites[site].classes)

    def test_classes_that_a_site_lacks_are_scored_on_the_truth(self, runs):
        lacked = [
            row for row in runs.phantom.summary.test if not row.held and row.model == "global"
        ]
        assert len(lacked) == 6 + 7
        assert all(row.labels == "truth" and row.positives + row.negatives > 0 for row in lacked)
        assert any(row.auroc is not None for row in lacked)

    def test_a_knob_of_one_site_is_at_that_site_alone_and_in_its_own_run(self, runs):
        job, own = (runs.phantom.folder / name for name in ("job", "own"))
        for site, rate in {"nih": 2e-3, "chexpert": 1e-3}.items():
            for folder in (job, own / f"{site}-job"):
                assert job_folder.knobs(folder, site)["learning_rate"] == rate
        assert job_folder.client_apps(job) == {"nih": "app_nih", "chexpert": "app_client"}

    def test_the_report_is_of_this_run(self, runs):
        assert "surgical on nih, chexpert" in runs.phantom.html


@pytest.mark.data
@needs_data
@pytest.mark.simulator
@pytest.mark.keras
class TestReal:
    def test_two_sites_with_the_published_classes(self, runs):
        sites = runs.real.summary.sites
        assert list(sites) == ["nih-1", "nih-2"]
        for site, classes in zip(sites.values(), published(2), strict=True):
            assert site.classes == tuple(sorted(classes))
        assert sum(site.images.total for site in sites.values()) == 1000

    def test_no_patient_is_at_both_sites_or_in_two_splits(self, runs):
        split = read_split(runs.real.folder.with_name("real-sites") / "sites/split.csv").assignment
        assert split["patient"].is_unique
        for site, summary in runs.real.summary.sites.items():
            assert (split["site"] == site).sum() == summary.patients.total

    def test_classes_without_positives_are_not_defined_and_the_report_says_so(self, runs):
        rows = [row for row in runs.real.summary.test if row.model == "global"]
        without = [row for row in rows if row.positives == 0]
        assert without
        assert all(row.auroc is None for row in without)
        assert all(row.auroc is not None for row in rows if row.positives)
        assert "no positive image in the test split" in runs.real.html
        assert all(row.class_name in runs.real.html for row in without)

    def test_there_are_intervals_and_a_word_on_the_small_test_set(self, runs):
        means = [mean for mean in runs.real.summary.means if mean.model == "global"]
        assert means and all(mean.low <= mean.auroc <= mean.high for mean in means)
        assert "Small test set" in runs.real.html and "Small test set" in runs.real.out

    def test_every_round_is_there_and_no_site_trained_alone(self, runs):
        assert [entry.round for entry in runs.real.summary.rounds] == [0, 1, 2, 3]
        assert {row.model for row in runs.real.summary.test} == {"global"}
        assert runs.real.summary.data == "real"


class TestInit:
    @pytest.mark.keras
    def test_it_writes_the_body_and_says_its_digest_on_one_line(self, initial_body, surgagg):
        from surgical_aggregation.checkpoint import digest, load

        checkpoint = load(initial_body)
        assert checkpoint.manifest["initial_body_sha256"] == digest(checkpoint.variables)
        assert checkpoint.manifest["weights"] == "none"


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

    def test_ends_the_process_with_code_2(self, surgagg):
        call = surgagg("run", JOB, "--set", "num_round=2")
        assert call.code == 2 and call.out == ""
        assert call.err.startswith("surgagg: job 'surgical' has no knob 'num_round'; nearest")
        assert len(call.err.splitlines()) == 1


def test_version_is_the_packages():
    call = typed("--version")
    assert (call.code, call.out) == (0, f"{__version__}\n")


def test_a_job_that_fails_is_exit_code_1(monkeypatch, capsys):
    def fail():
        raise SimulationError("the job failed: [nih] no images\nThe log is x.log")

    monkeypatch.setattr(cli, "app", fail)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 1
    said = capsys.readouterr().err
    assert said == "surgagg: the job failed: [nih] no images\nThe log is x.log\n"
