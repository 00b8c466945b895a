"""The command line as a whole; what the commands run is in simulator/test_commands.py."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import typer

from cxr_phantom.demo_data import PRETRAINED_BODY
from cxr_study.cli import main as cli
from cxr_study.cli import run
from cxr_study.jobs.methods import METHODS
from cxr_study.jobs.presets import PRESETS
from cxr_study.jobs.settings import JobSettings
from cxr_study.runs.run_request import check
from cxr_study.runs.simulator_process import SimulationError
from surgical_aggregation import __version__
from typed import typed

JOB = Path(__file__).parents[3] / "jobs" / "surgical"


@pytest.mark.parametrize("method", METHODS)
def test_a_demo_is_of_its_method_and_takes_the_phantom(method, started):
    call = typed("demo", "--job", method)
    assert call.code == 0, call.err
    ((study, _),) = started
    assert study.job.name == method
    assert study.site_files is None and study.job.sites == ("nih", "chexpert")
    assert study.local_models and not study.published
    refit = study.job.settings.get("refit_model", "none")
    assert refit == ("best" if method == "surgical" else "none")


def test_what_is_set_for_a_demo_wins_over_its_recipe_and_preset(started):
    typed("demo", "--job", JOB, "--set", "batch_size=8", "--set", "refit_model=none")
    ((study, _),) = started
    check(study)
    assert study.job.settings["batch_size"] == 8 and study.job.settings["refit_model"] == "none"
    assert study.job.settings["average_decay"] == PRESETS["recommended"].settings["average_decay"]


@pytest.mark.parametrize("job", ["surgical", JOB])
def test_a_run_takes_a_job_by_name_or_folder_from_any_folder(job, started, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert typed("run", job, "--phantom", "--set", "num_rounds=2").code == 0
    real = ("--site-files", "mine", "--sites", "a, b", "--initial-body", "drawings")
    assert typed("run", job, *real, "--local-models").code == 0
    (study, _), (other, _) = started
    assert (study.job.name, study.site_files, study.local_models) == ("surgical", None, False)
    assert study.job.settings["num_rounds"] == 2
    assert (other.site_files, other.job.sites) == (Path("mine"), ("a", "b"))
    assert other.local_models and not other.published
    assert other.initial_body == PRETRAINED_BODY
    assert not list(tmp_path.iterdir())


def test_the_settings_are_listed(monkeypatch):
    monkeypatch.setattr(run.console, "_width", 200)
    call = typed("run", "--settings")
    assert call.code == 0
    _, first, *others = call.out.splitlines()
    assert first.split()[:3] == ["server", "num_rounds", "12"]
    assert len(others) == len(JobSettings.model_fields) - 1


@pytest.mark.parametrize(("words", "message"), [
    ("run surgical", "--site-files <folder of <site>.yaml> for real data, or --phantom"),
    ("run surgical --phantom --site-files sites", "--phantom for drawn images; got both"),
    ("run [red]jobs --phantom", "surgagg: there is no job '[red]jobs'"),
    ("deploy job surgicl", "no job has this name; nearest known: surgical"),
    ("data partition .", "needs one Data_Entry_2017*.csv (or .gz) in . for dataset"),
    ("demo --out mine --force", "is removed; mine holds no job/meta.json"),
    *[(f"run surgical --phantom {words}", message) for words, message in {
        "--set num_rounds": "num_rounds=20, or SITE:NAME=VALUE; got 'num_rounds'",
        "--set num_rounds=[bold]2": "a whole number, 0 or more; got '[bold]2'",
        "--set nhi:seed=2": "site 'nhi', which is not in the job; nearest known: nih",
        "--preset papers": "there is no preset 'papers'; nearest known: paper",
        "--preset paper": "densenet121 with 0 hidden units; the initial body of",
        "--out mine": "a run needs a new folder; mine exists",
        "--out mine --force": "is removed; mine holds no job/meta.json",
        "--out old --force --set x=1": "has no setting 'x'",
        "--out old --force --sites nih,nih": "sites need different names of the letters",
    }.items()],
    ("run surgical --out old --force --site-files no", "no/nih.yaml does not exist"),
    ("run surgical --phantom --sites nih,chexprt", "has no site 'chexprt'; nearest"),
    ("run --nope", "No such option: --nope"),
    ("deploy job surgical", "Missing option '--out'. See surgagg deploy job --help."),
    ("study rum", "No such command 'rum'"),
])  # fmt: skip
def test_a_mistake_is_one_line_and_exit_code_2(cache, tmp_path, monkeypatch, words, message):
    """And nothing is made or removed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("all of it")
    (tmp_path / "old/job").mkdir(parents=True)
    (tmp_path / "old/job/meta.json").touch()
    before = sorted(tmp_path.rglob("*"))
    out = [] if "--out" in words or "Missing" in message else ["--out", "mistake"]
    call = typed(*words.split(), *out)
    assert (call.code, call.out) == (2, ""), call.err
    (line,) = call.err.splitlines()
    assert line.startswith("surgagg: ") and message in line
    assert sorted(tmp_path.rglob("*")) == before
    assert (tmp_path / "mine/thesis.txt").read_text() == "all of it"


@pytest.mark.parametrize("words", [
    "surgical --phantom --initial-body old/best.npz",
    "surgical --site-files old/sites --initial-body drawings", "old/job --phantom",
])  # fmt: skip
def test_force_does_not_remove_what_the_new_run_reads(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "check", lambda request: None)
    monkeypatch.setattr(run, "import_module", None)  # nothing after the check is reached
    shutil.copytree(JOB, tmp_path / "old/job")
    call = typed("run", *words.split(), "--out", "old", "--force")
    assert call.code == 2 and "--force would remove old/" in call.err
    assert "which the new run needs: it is in old. Give another --out" in call.err


def test_a_job_that_fails_is_exit_code_1_and_the_version_the_packages(monkeypatch, capsys):
    assert typed("--version").out == f"{__version__}\n"

    error = SimulationError("the job failed: [nih] no images\nThe log is x.log")
    monkeypatch.setattr(cli, "app", Mock(side_effect=error))
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert (end.value.code, capsys.readouterr().err) == (1, f"surgagg: {error}\n")


def unexplained(command, *path):
    """Options and arguments of a command and those below it that `--help` says nothing of."""
    for parameter in command.params:
        if not getattr(parameter, "help", None):
            yield [*path, parameter.name]
    for name, below in getattr(command, "commands", {}).items():
        yield from unexplained(below, *path, name)


def test_every_option_and_argument_is_explained():
    assert list(unexplained(typer.main.get_command(cli.app))) == []


COMMANDS = """
[surgagg.commands]
data.mine = my_commands:app
data.gone = my_commands_that_are_gone:app
date.mine = my_commands:app
[cxr_study.methods]
torn = my_torn_method:METHOD
[surgical_aggregation.strategies]
sept = my_commands:MINE
"""
MINE = """
import typer

app = typer.Typer()
MINE = {}


@app.command()
def mine(name: str) -> None:
    print(f"mine: {name}")
"""


@pytest.mark.parametrize(("words", "code", "said"), [
    ("data mine x", 0, "mine: x"),
    ("--help", 0, "Usage: surgagg"),
    ("run torn --phantom", 2, "surgagg: there is no job 'torn'"),
    ("run surgical --phantom --set strategy=sept", 2, "'sept' (my_commands:MINE), which the package"
     " my-commands offers in the group of entry points 'surgical_aggregation.strategies', cannot be"
     " used: TypeError: a Strategy is needed; got {}. Correct or remove the package."),
])  # fmt: skip
def test_what_is_broken_of_a_package_is_named_and_keeps_nothing_else_away(
    tmp_path, words, code, said
):
    info = tmp_path / "my_commands-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-commands\nVersion: 1\n")
    (info / "entry_points.txt").write_text(COMMANDS)
    (tmp_path / "my_commands.py").write_text(MINE)
    (tmp_path / "my_torn_method.py").write_text("METHOD = Method(")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", "from cxr_study.cli import start; start()", *words.split()],
        cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == code and said in done.stdout + done.stderr, done.stderr
    torn, gone, other = done.stderr.splitlines()[:3]
    assert torn.startswith("'torn' (my_torn_method:METHOD), which the package my-commands offers")
    assert "'cxr_study.methods', cannot be used: SyntaxError: '(' was never closed" in torn
    assert "'data.gone' (my_commands_that_are_gone:app)" in gone and "No module named" in gone
    assert other == "surgagg: 'date.mine' of 'surgagg.commands' names no group of commands"
