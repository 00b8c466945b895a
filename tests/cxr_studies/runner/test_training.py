import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import study_runs
from cxr_studies.baseline import BEST_FILE, LAST_FILE, ROUNDS_FILE, baseline_run
from cxr_studies.plan import run_settings
from cxr_studies.plan.row import Row
from cxr_studies.plan.run_folder import Run
from cxr_studies.runner import training


def server(folder, *rounds):
    """The server's folder of a job that made some rounds, each with two sites."""
    (folder / "metrics").mkdir(parents=True)
    metrics = [{"name": "bce", "value": 0.5}]
    lines = []
    for number in rounds:
        weights = (("a", 30), ("b", 12 + number))
        sites = [{"name": name, "weight": weight, "metrics": metrics} for name, weight in weights]
        lines.append(json.dumps({"round": number, "sites": sites}) + "\n")
    if rounds:
        (folder / "metrics/round_metrics.jsonl").write_text("".join(lines))
    (folder / "run_record.jsonl").touch()
    return folder


def test_a_last_job_that_made_no_round_leaves_losses_and_images_as_they_were(tmp_path):
    """It was interrupted after its last round, and its evaluations were made up for."""
    made, rest = server(tmp_path / "made", 0, 1), server(tmp_path / "rest")
    trained = training.federated(study_runs.run(strategy="fedavg"), 2, [made, rest])
    assert trained.images == 43 and trained.losses == (0.5, 0.5)


@pytest.mark.parametrize(("method", "strategy", "personal", "has_columns"), [
    ("surgical", "fedavg", False, True), ("vanilla", "fedbn+", False, True),
    ("personalised", "fedbn+", True, False), ("personalised", "fedbn", True, False),
    ("surgical", "fedbn", True, True), ("vanilla", "fedbn", True, True),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["best", "last"])
def test_models_are_one_or_one_a_site(monkeypatch, method, strategy, personal, has_columns, kind):
    rounds = []
    monkeypatch.setattr(training, "_simulate", lambda *_: None)
    monkeypatch.setattr(training, "federated", lambda run, made, servers: rounds.append(made))
    run = study_runs.run(method, strategy)
    what, where = {**run.what, "model": kind}, {**run.where, "project": None}
    planned = dataclasses.replace(run, what=what, where=where)
    models, _ = training.train(planned, Path("/w"), rounds.append)
    server = Path("/w/part-0/server/checkpoints/simulate_job")
    wanted = dict.fromkeys(study_runs.SITES, server / f"{kind}.npz")
    if personal:
        own = f"checkpoints/simulate_job/site_{kind}.npz"
        wanted = {site: Path("/w/part-0") / site / own for site in wanted}
    others = {"server": server / f"{kind}.npz"} if personal and has_columns else {}
    assert models == wanted | others


SITES, UNION = ("nih", "chexpert"), ("Edema", "Fracture", "Mass")


@pytest.fixture
def train(tmp_path, monkeypatch):
    """Train a row; the runs that were asked for, what was reported and what came out.

    The losses of each run are the next of `losses`.
    """

    def train(method, losses, sites=SITES, preset=None, last=False, **more):
        runs, reported, left = [], [], iter(losses)

        def record(run, progress):
            runs.append(run)
            run.out.mkdir(parents=True, exist_ok=True)
            made = [
                {"mean_validation_bce": x, "mean_validation_auroc": 1 - (x or 1), "images": 40}
                for x in next(left)
            ]
            (run.out / ROUNDS_FILE).write_text("".join(json.dumps(line) + "\n" for line in made))
            progress(len(made) - 1, 99)

        monkeypatch.setattr(baseline_run, "train", record)
        what = {"union": UNION, "preset": preset, "given": {"num_rounds": 5, "min_clients": 2}}
        what |= more
        where = {"sites": sites, "site_files": "/sites", "initial_body": "/body.npz"}
        planned = Run("", Row(method, "fedbn+"), 0, {**what, "model": last and "last"}, where)
        models, trained = training.train(planned, tmp_path, reported.append)
        own = {"num_rounds": 5}
        for run in runs:
            theirs = more.get("per_site", {})
            wanted = run_settings.all_settings(planned.row, run.sites, UNION, preset, own, theirs)
            assert run.settings == wanted
        return SimpleNamespace(runs=runs, reported=reported, models=models, trained=trained)

    return train


def test_centralised_data_are_one_training_with_one_model(train, tmp_path):
    done = train("centralised-partial", [[None, 0.5, 0.25]])
    [run] = done.runs
    assert (run.method, run.sites) == ("centralised-partial", SITES)
    assert (run.site_files, run.initial_body) == (Path("/sites"), Path("/body.npz"))
    assert run.out.parent == tmp_path
    assert done.models == dict.fromkeys(SITES, run.out / BEST_FILE)
    assert (done.trained.rounds, done.trained.losses) == (2, (None, 0.5, 0.25))
    assert (done.trained.aurocs, done.trained.images) == ((0.0, 0.5, 0.75), 40)
    assert done.trained.column_similarity == ()
    [complete] = train("complete", [[0.5]], sites=("nih",)).runs
    assert (complete.method, complete.sites) == ("centralised", ("nih",))
    last = train("centralised", [[0.5]], last=True)
    assert set(last.models.values()) == {last.runs[0].out / LAST_FILE}


def test_each_site_alone_is_a_training_with_settings_and_a_model_of_its_own(train):
    losses = [[None, 0.5, 0.25, 0.125], [0.5, 0.25, 0.75]]
    done = train("individual", losses, preset="paper-fedfbn", last=True)
    assert [(run.method, run.sites) for run in done.runs] == [("individual", (s,)) for s in SITES]
    models = {site: run.out / LAST_FILE for site, run in zip(SITES, done.runs, strict=True)}
    assert done.models == models and len(set(models.values())) == 2
    assert [run.settings["learning_rate"] for run in done.runs] == [1e-5, 5e-5]
    # Losses are means of sites for the rounds that all made.
    assert (done.reported, done.trained.rounds) == ([3, 2], 3)
    assert done.trained.losses == (None, 0.375, 0.5)
    assert (done.trained.aurocs, done.trained.images) == ((0.25, 0.625, 0.5), 80)


def test_settings_for_one_site_count_where_it_trains_alone_and_in_a_federation(train, monkeypatch):
    own = {"chexpert": {"learning_rate": 0.25}}
    runs = train("individual", [[0.5], [0.5]], preset="paper-fedfbn", per_site=own).runs
    assert [run.settings["learning_rate"] for run in runs] == [1e-5, 0.25]
    jobs = []
    monkeypatch.setattr(training.job_export, "write", lambda job, folder: jobs.append(job))
    monkeypatch.setattr(training, "simulate", lambda *_, **__: None)
    monkeypatch.setattr(training, "federated", lambda *_: None)
    run = study_runs.run()
    what = {**run.what, "union": UNION, "preset": None, "given": {}, "per_site": own}
    where = {**run.where, "project": None, "site_files": "/s", "initial_body": "/b.npz"}
    training.train(dataclasses.replace(run, what=what, where=where), Path("/w"), print)
    assert [jobs[0].at(site).learning_rate for site in SITES] == [1e-3, 0.25]
