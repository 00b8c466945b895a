"""`surgagg deploy job`, `submit` and `kit`, as typed."""

import json

import pytest
from typer.testing import CliRunner

from cxr_study.cli import deploy
from cxr_study.cli import main as cli
from cxr_study.deployment import deployed_run, flare_session
from cxr_study.deployment.flare_session import SessionError
from cxr_study.deployment.site_kit import KitError
from cxr_study.jobs import job_folder
from tiny_job import JOBS
from typed import typed


@pytest.fixture
def submitted(monkeypatch):
    """What was run, by which kit; a kit called "bad" is not let in."""
    runs = []

    class Session:
        def __init__(self, kit, patience, on_wait):
            self.kit = kit
            self.patience = patience
            on_wait(patience)

        def __enter__(self):
            if self.kit.name == "bad":
                raise SessionError("it is not let in.")
            return self

        def __exit__(self, *_):
            pass

    def run(deployed, session, steps):
        runs.append((deployed, session.kit, session.patience))
        return (deployed.folder / "1/workspace", deployed.folder / "2/workspace")

    def report(run, folder, title, to):
        runs.append((run, folder))
        return lambda: None

    monkeypatch.setattr(flare_session, "FlareSession", Session)
    monkeypatch.setattr(deployed_run, "run", run)
    monkeypatch.setattr(deploy, "make_report", report)
    return runs


@pytest.fixture
def call(tmp_path):
    def call(*arguments, kit="lead", job=JOBS / "surgical"):
        base = ["deploy", "submit", job, "--kit", tmp_path / kit, "--out", tmp_path / "out"]
        return CliRunner().invoke(cli.app, [*map(str, base), *map(str, arguments)])

    return call


def test_a_copy_with_the_settings_is_run_and_what_came_home_is_on_record(submitted, call, tmp_path):
    asked = ("--set", "num_rounds=3", "--retries", "1", "--server-timeout", "90")
    done = call("--sites", "a,b", *asked)
    assert done.exit_code == 0, done.output
    assert "the server does not answer; waiting for up to 90 s" in done.output
    (deployed, kit, patience), (run, folder) = submitted
    assert patience == 90
    assert kit == tmp_path / "lead" and deployed.retries == 1 and deployed.workspaces == {}
    assert job_folder.read_settings(deployed.job)["num_rounds"] == 3
    assert job_folder.sites(deployed.job) == ("a", "b")
    assert json.loads((tmp_path / "out/run.json").read_text())["jobs"] == ["1", "2"]
    assert run.elsewhere and folder == tmp_path / "out/report"


@pytest.mark.parametrize("job", ["surgical", JOBS / "surgical"])
def test_what_is_submitted_is_not_marked_as_bringing_code(submitted, call, job):
    done = call(job=job)
    assert done.exit_code == 0, done.output
    copy = submitted[0][0].job
    assert not list(copy.glob("*/custom")) and (JOBS / "surgical/app_client/custom").is_dir()


def test_with_the_sites_data_the_report_may_be_full(submitted, call, tmp_path):
    (tmp_path / "images").mkdir()
    for file in ("labels.csv", "split.csv"):
        (tmp_path / file).touch()
    for site in ("nih", "chexpert"):
        (tmp_path / f"{site}.yaml").write_text(
            "dataset: nih\nlabels: labels.csv\nimages: images\nsplit: split.csv\n"
        )
    assert call("--site-files", tmp_path).exit_code == 0
    run, _ = submitted[1]
    assert run.site_files == tmp_path and not run.elsewhere


@pytest.mark.parametrize(
    ("options", "kit", "message"),
    [
        ((), "lead", "needs a new folder"),
        (("--force",), "bad", "it is not let in"),
        (("--force", "--site-files", "."), "lead", "nih.yaml does not"),
    ],
)
def test_a_mistake_costs_nobody_an_earlier_run(submitted, call, tmp_path, options, kit, message):
    assert call().exit_code == 0
    submitted.clear()
    assert message in str(call(*options, kit=kit).exception)
    assert submitted == [] and (tmp_path / "out/run.json").is_file()


def test_a_job_is_a_folder_with_everything_set_and_no_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = (
        "--strategy", "fedbn", "--sites", "a, b", "--preset", "paper", "--set", "num_rounds=3",
        "--set", "b:epochs=2", "--out", "new/job",
    )  # fmt: skip
    call = typed("deploy", "job", "personalised", *options)
    assert call.code == 0, call.err
    assert call.out == "job      new/job\nsubmit   nvflare job submit -j new/job\n"
    job = tmp_path / "new/job"
    settings = job_folder.read_settings(job, "b")
    wanted = {"strategy": "fedbn", "num_rounds": 3, "patience": 25, "epochs": 2}
    assert {name: settings[name] for name in wanted} == wanted
    assert job_folder.client_apps(job) == {"a": "app_client", "b": "app_b"}
    assert not list(job.glob("*/custom"))
    again = typed("deploy", "job", "personalised", *options)
    assert again.code == 2 and "new/job" in again.err


FILES = {
    "authorization": {"permissions": {"project_admin": "any", "lead": {"byoc": "any"}}},
    "resources": {
        "class_allow_list": [],
        "components": [
            {"id": id_, "args": {}} for id_ in ("resource_manager", "job_manager", "log_receiver")
        ],
        "snapshot_persistor": {"args": {"storage": {"args": {}}}},
    },
}


@pytest.fixture
def kit(tmp_path):
    """What a kit of either kind has that the commands read."""
    for folder in ("startup", "local"):
        (tmp_path / folder).mkdir()
    for name in ("fed_client.json", "fed_server.json"):
        (tmp_path / "startup" / name).touch()
    for name, content in FILES.items():
        (tmp_path / "local" / f"{name}.json.default").write_text(json.dumps(content))
    return tmp_path


@pytest.fixture
def localise(kit, tmp_path):
    """Types `surgagg deploy kit`; what it says, and the properties of the scope that it writes."""

    def localise(kind, *options):
        words = ["deploy", "kit", kind, str(kit), *map(str, options)]
        result = CliRunner().invoke(cli.app, words, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        (scope,) = json.loads((kit / "local" / "privacy.json").read_text())["scopes"]
        return result.output, scope["properties"]

    return localise


def test_a_sites_options_are_its_policy_and_the_files_are_listed(localise, kit):
    said, properties = localise(
        "site", "--site-files", "/data/sites", "--share", "Edema", "--share", "Mass, lung",
        "--min-images", 500, "--min-positives", 20, "--report-counts",
    )  # fmt: skip
    assert properties == {
        "share": ["Edema", "Mass, lung"],
        "min_images": 500,
        "min_positives": 20,
        "report_counts": True,
        "site_files": "/data/sites",
    }
    written = [kit / "local" / f"{n}.json" for n in ("resources", "privacy", "authorization")]
    assert said.splitlines() == [f"written  {path}" for path in written]


def test_without_options_all_is_shared_and_no_counts_are(localise):
    said, properties = localise("site")
    assert "no --site-files: CXR_SITES must say" in said
    assert properties == {"min_images": 0, "min_positives": 0, "report_counts": False}


def test_the_servers_table_is_read_from_yaml_and_of_another_form_refused(localise, tmp_path):
    table = tmp_path / "permitted.yaml"
    options = ("--storage", "/data/flare", "--permitted", table)
    for text in ("", "nih: Edema", "[nih]", "nih: [1]"):
        table.write_text(text)
        with pytest.raises(KitError, match="needs a list of class names for each site"):
            localise("server", *options)
    table.write_text("nih: [Edema, 'Mass, lung']\nchexpert: []\n")
    permitted = {"nih": ["Edema", "Mass, lung"], "chexpert": []}
    assert localise("server", *options)[1] == {"permitted": permitted}
