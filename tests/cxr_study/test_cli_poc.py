import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cxr_study import cli, cli_poc, job_folder
from cxr_study.deployment import poc_run
from cxr_study.deployment.poc_project import PocError
from cxr_study.deployment.poc_system import PocSystem
from cxr_study.finished_run import write_facts
from tiny_job import JOBS

PROJECT = Path(__file__).parents[2] / "poc/project.yml"


def call(*arguments):
    return CliRunner().invoke(cli.app, ["poc", *map(str, arguments)])


@pytest.fixture
def ran(monkeypatch):
    """The runs that were asked for; each leaves what a run leaves."""
    runs = []

    def run(poc, console, report):
        runs.append(poc)
        job_folder.copy(
            poc.job, poc.folder / "job", sites=poc.sites, settings=poc.settings
        )  # fmt: skip
        write_facts(poc.folder, poc.site_files, ["1"])
        report()

    monkeypatch.setattr(poc_run, "run", run)
    said = lambda: cli_poc.say("the answer")  # noqa: E731
    monkeypatch.setattr(cli_poc, "make_report", lambda run, folder, title, to: said)
    return runs


class TestRun:
    def test_the_phantom_study_with_the_jobs_own_sites_by_default(self, ran, tmp_path):
        done = call("run", JOBS / "surgical", "--out", tmp_path / "out")
        assert done.exit_code == 0 and "the answer" in done.output
        (poc,) = ran
        assert poc.sites == ("nih", "chexpert") and poc.site_files is None
        assert poc.port is None and poc.retries == 3 and not poc.keep

    def test_an_initial_body_is_found_from_anywhere(self, ran, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        call("run", JOBS / "surgical", "--out", "out", "--initial-body", "body.npz")
        assert ran[0].settings["initial_body"] == str(tmp_path / "body.npz")

    def test_an_unknown_knob_is_refused_before_anything_is_made(self, ran, tmp_path):
        done = call("run", JOBS / "surgical", "--out", tmp_path / "out", "--set", "rounds=1")
        assert "no knob 'rounds'" in str(done.exception)
        assert not (tmp_path / "out").exists()

    def test_an_earlier_one_is_cleaned_with_its_system_where_that_is_wanted(
        self, ran, tmp_path, monkeypatch
    ):
        out = tmp_path / "out"
        (out / "poc").mkdir(parents=True)
        shutil.copytree(JOBS / "surgical", out / "job")
        cleaned = []

        def clean(system):
            cleaned.append(system.folder)
            shutil.rmtree(system.folder)

        monkeypatch.setattr(PocSystem, "clean", clean)
        assert "needs a new folder" in str(call("run", JOBS / "surgical", "--out", out).exception)
        assert not cleaned
        assert call("run", JOBS / "surgical", "--out", out, "--force").exit_code == 0
        assert cleaned == [out / "poc"]


class TestSteps:
    def test_a_system_is_prepared_once_in_a_folder(self, tmp_path):
        folder = ("--folder", tmp_path / "poc")
        done = call("prepare", "--project", PROJECT, "--sites", "a,b", *folder)
        assert done.exit_code == 0 and "server and a, b, port" in done.output
        system = PocSystem(tmp_path / "poc")
        assert (system.lead / "startup/fed_admin.json").is_file()
        assert set(system.places) == {"server", "a", "b"} and system.site_files is None
        assert not list(system.folder.glob("*/*/prod_00/nih"))
        again = call("prepare", "--project", PROJECT, *folder)
        assert isinstance(again.exception, PocError) and "needs a new folder" in str(
            again.exception
        )
        assert call("stop", *folder).exit_code == 0
        assert call("clean", *folder).exit_code == 0
        assert not system.folder.exists()

    def test_site_files_are_known_to_the_sites(self, tmp_path):
        system = PocSystem(tmp_path / "poc")
        system.prepare(PROJECT, site_files=tmp_path)
        assert system.site_files == tmp_path

    def test_a_folder_with_a_space_is_refused(self, tmp_path):
        done = call("prepare", "--project", PROJECT, "--folder", tmp_path / "my poc")
        assert "without spaces" in str(done.exception) and not list(tmp_path.iterdir())

    @pytest.mark.parametrize("command", ["start", "stop", "clean"])
    def test_what_was_not_prepared_is_not_there(self, tmp_path, command):
        (tmp_path / "mine.txt").touch()
        done = call(command, "--folder", tmp_path)
        assert isinstance(done.exception, PocError) and "holds no POC" in str(done.exception)
        assert (tmp_path / "mine.txt").is_file()
