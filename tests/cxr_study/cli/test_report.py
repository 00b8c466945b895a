import json
import shutil
from io import StringIO

import pytest
from rich.console import Console

from cxr_study.cli.report import make_report
from cxr_study.reports.run import console as summary_console
from cxr_study.reports.run import evaluate_run
from cxr_study.runs.finished_run import downloaded_run, write_facts
from cxr_study.runs.job_results import ResultsError
from tiny_job import JOBS
from typed import typed


@pytest.fixture
def downloaded(tmp_path):
    """Makes a downloaded job with what its sites measured."""

    def make(job="surgical", results=True):
        folder = tmp_path / "1234"
        shutil.copytree(JOBS / job, folder / "job" / job)
        (folder / "workspace/cross_site_val").mkdir(parents=True)
        if results:
            measured = {"nih": {"SRV_best": {"auroc/Edema": 0.75, "bce/Edema": 0.5}}}
            path = folder / "workspace/cross_site_val/cross_val_results.json"
            path.write_text(json.dumps(measured))
        return folder

    return make


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


def printed(run, folder):
    console = Console(file=StringIO(), width=100)
    make_report(run, folder, "title", console)()
    return console.file.getvalue()


@pytest.mark.parametrize(("job", "elsewhere"), [("surgical", True), ("surgical_he", False)])
def test_without_the_data_or_of_an_encrypted_model_it_is_what_the_sites_measured(
    downloaded, full, tmp_path, job, elsewhere
):
    run = downloaded_run(downloaded(job), None, elsewhere=elsewhere)
    assert "0.750" in printed(run, tmp_path / "report")
    assert "Edema,nih,0.75" in (tmp_path / "report/federated_test.csv").read_text()
    assert full == []


def test_of_a_job_that_measures_no_model_it_is_the_folder_and_else_results_are_needed(
    downloaded, full, tmp_path
):
    folder = downloaded("census", results=False)
    said = printed(downloaded_run(folder, None), tmp_path)
    assert said.split() == ["results", str(folder / "workspace")]
    shutil.rmtree(folder)
    run = downloaded_run(downloaded(results=False), None, elsewhere=True)
    with pytest.raises(ResultsError, match="holds no result of a test split"):
        printed(run, tmp_path)


def test_the_command_finds_a_runs_data_and_is_told_that_of_a_download(downloaded, full, tmp_path):
    def call(*arguments):
        called = typed("report", *arguments)
        assert called.code == 0, called.err
        return called.out

    shutil.copytree(JOBS / "surgical", tmp_path / "run/job")
    write_facts(tmp_path / "run", tmp_path / "files", ["1"])
    said = call(tmp_path / "run")
    assert "summary" in said and str(tmp_path / "run/results/1/workspace/models") in said
    folder = downloaded()
    call(folder)  # is the table
    call(folder, "--site-files", tmp_path, "--out", tmp_path / "out")
    call(folder, "--phantom")
    assert [run.site_files for run, _ in full] == [tmp_path / "files", tmp_path, None]
    outs = [tmp_path / "run/report", tmp_path / "out", folder / "report"]
    assert [out for _, out in full] == outs
