import json
import shutil

import pytest

from cxr_study.reports.run import console as summary_console
from cxr_study.reports.run import evaluate_run
from cxr_study.runs.finished_run import write_facts
from tiny_job import JOBS
from typed import answer


def download(folder, job="surgical"):
    """Make a downloaded job with what its sites measured."""
    shutil.copytree(JOBS / job, folder / "job" / job)
    path = folder / "workspace/cross_site_val/cross_val_results.json"
    path.parent.mkdir(parents=True)
    measured = {"nih": {"SRV_best": {"auroc/Edema": 0.75, "bce/Edema": 0.5}}}
    path.write_text(json.dumps(measured))
    return path


@pytest.fixture
def full(monkeypatch):
    """The runs that were reported in full, with the folder of the report."""
    runs = []

    def report(run, folder, *, title, console):
        runs.append((run, folder))
        return "summary", folder / "report.html"

    monkeypatch.setattr(evaluate_run, "report", report)
    monkeypatch.setattr(summary_console, "print_summary", lambda summary, to: to.print(summary))
    return runs


@pytest.mark.parametrize(("job", "options"), [("surgical", ()), ("surgical_he", ("--phantom",))])
def test_without_the_data_or_of_an_encrypted_model_it_is_what_the_sites_measured(
    full, tmp_path, job, options
):
    results = download(tmp_path, job)
    assert "0.750" in answer("report", tmp_path, *options)
    assert "Edema,nih,0.75" in (tmp_path / "report/federated_test.csv").read_text()
    results.unlink()
    said = answer("report", tmp_path, *options, code=2)
    assert "holds no result of a test split" in said
    assert full == []


def test_of_a_job_that_measures_no_model_it_is_the_folder(tmp_path):
    download(tmp_path, "census").unlink()
    assert answer("report", tmp_path).split() == ["results", str(tmp_path / "workspace")]


def test_the_command_finds_a_runs_data_and_is_told_that_of_a_download(full, tmp_path):
    shutil.copytree(JOBS / "surgical", tmp_path / "run/job")
    write_facts(tmp_path / "run", tmp_path / "files", ["1"])
    said = answer("report", tmp_path / "run")
    assert "summary" in said and str(tmp_path / "run/results/1/workspace/models") in said
    folder = tmp_path / "1234"
    download(folder)
    answer("report", folder)  # is the table
    answer("report", folder, "--site-files", tmp_path, "--out", tmp_path / "out")
    answer("report", folder, "--phantom")
    assert [run.site_files for run, _ in full] == [tmp_path / "files", tmp_path, None]
    outs = [tmp_path / "run/report", tmp_path / "out", folder / "report"]
    assert [out for _, out in full] == outs
