import json
import shutil

import numpy as np
import pytest

from cxr_study.cli.run import ABSENT
from cxr_study.evaluation.summary_json import Summary
from cxr_study.reports.run import console as summary_console
from cxr_study.reports.run import evaluate_run
from cxr_study.runs.finished_run import RunFacts
from html_page import Page
from made_up_summary import SUMMARY
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save
from surgical_aggregation.server.records.run_record import RECORD_FILE
from surgical_aggregation.wire import variables as wire
from tiny_job import JOBS
from typed import answer


def download(folder, job="surgical"):
    """Make a downloaded job with its best model, its record, and what its sites measured."""
    shutil.copytree(JOBS / job, folder / "job" / job)
    server = folder / "workspace"
    columns = {name: (np.ones(2, np.float32), np.ones(1, np.float32)) for name in ("Edema", "Mass")}
    facts = {"best": {"round": 1, "value": 0.5}, "strategy": "fedbn+", "head_features": 2}
    trained = {"Edema": {"sites": ["nih"], "last_round": 0, "rounds": [[0, 0, ["nih"]]]}}
    best = Checkpoint(wire.join({}, columns), {**facts, "classes": trained})
    save(best, server / "models/best.npz")
    events = [{"event": "round", "round": 0}, {"event": "ended", "seconds": 60.0}]
    (server / RECORD_FILE).write_text("".join(f"{json.dumps(event)}\n" for event in events))
    (server / "metrics").mkdir()
    measured = [{"name": "nih", "metrics": [{"name": "bce", "value": 0.5}]}]
    line = json.dumps({"round": 0, "sites": measured})
    (server / "metrics/round_metrics.jsonl").write_text(f"{line}\n")
    path = server / "cross_site_val/cross_val_results.json"
    path.parent.mkdir()
    path.write_text('{"nih": {"SRV_best": {"auroc/Edema": 0.75, "bce/Edema": 0.5}}}')
    return path


@pytest.mark.parametrize(("job", "options"), [("surgical", ()), ("surgical_he", ("--phantom",))])
def test_without_data_or_of_an_encrypted_model_it_is_what_sites_measured(tmp_path, job, options):
    results = download(tmp_path, job)
    output = answer("report", tmp_path, *options, code=ABSENT)
    assert "chexpert contributed to no round: the model has nothing of it." in output
    assert "mean AUROC 0.75 for 1 of 2 classes at nih" in " ".join(output.split())
    assert "Measured at the sites." in output
    assert "Edema,nih,0.75" in (tmp_path / "report/federated_test.csv").read_text()
    summary = Summary.from_json((tmp_path / "report/summary.json").read_text())
    assert (summary.data, summary.job, summary.best.round) == ("elsewhere", job, 1)
    assert summary.sites["nih"].classes == ("Edema",) and summary.sites["nih"].images is None
    assert summary.trained_by["Edema"] == ("nih",)
    page = Page((tmp_path / "report/report.html").read_text())
    assert "Every site measured the model itself" in page.text and "At the sites" in page.text
    assert "Edema labels it global 0.750" in page.text
    assert "measured against complete labels" not in page.text
    card = (tmp_path / "workspace/models/model_card.md").read_text()
    assert "as the site measured it" in card and "| Edema | nih | yes | 0.750 | withheld |" in card
    results.unlink()
    assert "holds no result of a test split" in answer("report", tmp_path, *options, code=2)


def test_of_a_run_whose_first_job_was_lost_the_rounds_are_those_of_the_model(tmp_path):
    """The server crashed after round 1, and FLARE gives no download of that job."""
    download(tmp_path)
    server = tmp_path / "workspace"
    lines = [{"round": n, "sites": [{"name": "nih", "metrics": []}]} for n in (2, 3)]
    (server / "metrics/round_metrics.jsonl").write_text("\n".join(map(json.dumps, lines)))
    contributed = {"nih": [[0, 3]], "chexpert": [[0, 3]]}
    history = [{"job": "lost", "rounds": [0, 2]}]
    facts = {"job": "second", "round": 4, "planned_rounds": 4, "history": history}
    save(Checkpoint({}, {**facts, "contributed": contributed}), server / "models/last.npz")
    output = " ".join(answer("report", tmp_path).split())
    assert "rounds 4 (best: 1)" in output and "Not finished" not in output
    assert "The record of rounds 0 and 1 is not at hand" in output
    summary = Summary.from_json((tmp_path / "report/summary.json").read_text())
    assert (summary.num_rounds, summary.planned_rounds) == (4, 4)


def test_of_a_job_that_measures_no_model_it_is_the_folder(tmp_path):
    download(tmp_path, "census").unlink()
    assert answer("report", tmp_path).split() == ["results", str(tmp_path / "workspace")]


def test_the_command_finds_a_runs_data_and_is_given_those_of_a_download(tmp_path, monkeypatch):
    full = []

    def report(run, folder, console):
        full.append((run, folder))
        return evaluate_run.Report(SUMMARY, folder / "report.html", None, ())

    monkeypatch.setattr(evaluate_run, "report", report)
    monkeypatch.setattr(summary_console, "print_summary", lambda summary, to: to.print("summary"))
    shutil.copytree(JOBS / "surgical", tmp_path / "run/job")
    RunFacts(tmp_path / "files", ["1"]).write(tmp_path / "run")
    output = answer("report", tmp_path / "run")
    assert "summary" in output and str(tmp_path / "run/results/1/workspace/models") in output
    folder = tmp_path / "1234"
    download(folder)
    answer("report", folder)  # is what the sites measured
    answer("report", folder, "--site-files", tmp_path, "--out", tmp_path / "out")
    answer("report", folder, "--phantom")
    assert [(run.facts.site_files, run.facts.elsewhere, out) for run, out in full] == [
        (tmp_path / "files", False, tmp_path / "run/report"), (None, True, folder / "report"),
        (tmp_path, False, tmp_path / "out"), (None, False, folder / "report"),
    ]  # fmt: skip
