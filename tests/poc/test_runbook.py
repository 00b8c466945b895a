"""The runbook's commands exist, and those of real machines run line by line."""

import json
import re
import shlex
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
import yaml
from nvflare import cli as flare
from nvflare.apis.fl_constant import AdminCommandNames
from typer.testing import CliRunner

from cxr_deployment import deployed_run, system_status
from cxr_deployment.deployed_run import DeployedRun, DeployedRunError
from cxr_deployment.flare_session import FlareSession
from cxr_deployment.poc_system import PocProject
from cxr_phantom.writers.write_phantom import write_phantom
from cxr_study.cli import main as cli
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.jobs.job import Job
from cxr_study.runs.run_request import check_network
from deployed import Network
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, save

ROOT = Path(__file__).parents[2]
PAGES = ("deploy", "operate")
RUNBOOK = "".join((ROOT / f"docs/how-to/{page}.md").read_text() for page in PAGES)
RUNBOOK = RUNBOOK.replace("\\\n", "")
FENCED = "\n".join(re.findall(r"^```bash\n(.*?)^```", RUNBOOK, re.M | re.S))
INLINE = re.findall(r"`([^`\n]+)`", RUNBOOK)


def words(line):
    """A command's words without its comment; placeholders are one letter."""
    line = re.sub(r"^\w+=\$\((.*)\)$", r"\1", line)  # one whose answer is kept
    return shlex.split(re.sub(r"<[^>]*>", "X", line), comments=True)


LINES = [line for line in map(words, FENCED.splitlines()) if line]
OF_MODELS = ("baseline", "model evaluate")
"""Commands that train a model, or need one that was trained: they are parsed and not run."""

SECTION = LINES[LINES.index(["chmod", "-R", "go=", "network"]) + 1 :]
MENTIONED = [words(text) for text in INLINE if text.startswith(("surgagg ", "nvflare "))]


def commands(program):
    """Arguments of each of the runbook's commands of a program."""
    found = {tuple(line) for line in LINES + MENTIONED if line[0] == program}
    return [pytest.param(list(line[1:]), id=shlex.join(line)) for line in sorted(found)]


def test_the_search_finds_commands_and_the_files_that_they_name_exist():
    assert len(commands("surgagg")) > 12 and len(commands("nvflare")) > 8
    programs = {"surgagg", "nvflare", "chmod", "export", "bash", "until"}
    assert {line[0] for line in LINES} == programs
    named = set(re.findall(r"`((?:jobs|poc)/[\w./]+)`", RUNBOOK))
    assert named and {name for name in named if not (ROOT / name).exists()} == set()


@pytest.mark.parametrize("arguments", commands("surgagg"))
def test_surgagg_knows_it(arguments):
    command, rest = typer.main.get_command(cli.app), list(arguments)
    while rest and hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    if rest or ["surgagg", *arguments] in LINES:  # else it is only spoken of
        with command.make_context("surgagg", rest):
            pass


@pytest.mark.parametrize("arguments", commands("nvflare"))
def test_flare_knows_it(arguments, monkeypatch):
    monkeypatch.setattr("sys.argv", ["nvflare", *arguments])
    flare.parse_args("nvflare")


@pytest.fixture(scope="module")
def kits(tmp_path_factory):
    """The folder that holds the kits that FLARE makes of the project file."""
    folder = tmp_path_factory.mktemp("network")
    return Network(folder).provision(["nih", "chexpert"]).server.parent


def test_the_console_has_the_commands_and_the_kits_the_scripts(kits):
    row = re.search(r"^- In the console, ((?:.+\n  )*.+)$", RUNBOOK, re.M)[1]
    known = set(vars(AdminCommandNames).values())
    listed = {command.split()[0] for command in re.findall(r"`([^`]+)`", row)} - {"bash"}
    assert len(listed) > 4 and listed <= known
    named = set(re.findall(r"\w+\.sh\b|(?<=startup/)\w+\.crt", RUNBOOK))
    assert len(named) > 3
    assert named <= {path.name for path in kits.glob("*/startup/*")}


@pytest.fixture(scope="module")
def network(kits, tmp_path_factory):
    """What the commands for real machines leave, run beside the kits, without FLARE's own commands.

    /data holds the phantom's downloads; of the initial body only the manifest is made (no weights).
    """
    data = tmp_path_factory.mktemp("data")
    write_phantom(data, images_per_site=60, size=16)
    submitted = []

    def submit(deployed):
        submitted.append(deployed.job.absolute())
        deployed.jobs = ["1"]
        deployed.write_facts()  # for `watch`
        raise DeployedRunError("the test ends here")

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(kits)
        patch.setenv("SURGAGG_CACHE", str(data / "cache"))
        patch.setattr(FlareSession, "_open", lambda *_: None)
        patch.setattr(DeployedRun, "run", submit)
        patch.setattr(deployed_run, "check", lambda *_: ([], None))
        patch.setattr(system_status, "status_lines", lambda *_: [])
        shutil.copy(ROOT / "poc" / "server" / "permitted.yaml", kits)
        variables = {}
        for line in SECTION:
            line = [word.replace("/data/", f"{data}/") for word in line]
            if line[0] == "export":
                variables.update([line[1].split("=")])
            elif line[:3] == ["surgagg", "model", "init"]:
                init = typer.main.get_command(cli.app).commands["model"].commands["init"]
                given = init.make_context("init", line[3:]).params
                facts = {name: given[name] for name in ("backbone", "hidden")}
                save(Checkpoint({}, facts), given["file"])
            elif line[0] == "surgagg" and not " ".join(line[1:]).startswith(OF_MODELS):
                done = CliRunner().invoke(cli.app, line[1:])
                submits = line[2] in ("submit", "watch")
                assert isinstance(done.exception, DeployedRunError) == submits, done
                assert submits or done.exit_code == 0, (line, done.exception)
    return SimpleNamespace(job=submitted[0], kits=kits, variables=variables)


def test_every_party_of_the_job_is_localised_checked_and_started(network):
    sites = set(Job.from_folder(network.job).sites)
    parties = {path.parts[-3] for path in network.kits.glob("*/local/privacy.json")}
    assert parties == {"server", *sites}
    check, start = (
        {party: LINES.index([*words, form.format(party)]) for party in parties}
        for words, form in (
            (["nvflare", "preflight-check", "-p"], "{}"), (["bash"], "{}/startup/start.sh"),
        )
    )  # fmt: skip
    assert all(check[party] < start[party] for party in parties)
    port = PocProject.read(ROOT / "poc" / "project.yml").port
    listens = next(n for n, line in enumerate(LINES) if f"/dev/tcp/localhost/{port})" in line)
    assert all(start["server"] < listens < check[site] for site in sites)

    settings = Job.from_folder(network.job).settings
    assert settings["initial_body"] == "{$CXR_INITIAL_BODY}"
    body = Path(network.variables["CXR_INITIAL_BODY"])
    check_network(body, backbone=settings["backbone"], hidden=settings["hidden"])
    assert next(n for n, line in enumerate(LINES) if line[0] == "export") < start["server"]

    permitted = yaml.safe_load((network.kits / "permitted.yaml").read_text())
    for site in sites:
        policy = json.loads((network.kits / site / "local/privacy.json").read_text())
        properties = policy["scopes"][0]["properties"]
        assert read_site_file(Path(properties["site_files"], f"{site}.yaml")).split.is_file()
        assert set(properties["share"]) <= set(permitted[site])
