"""`surgagg deploy job`, `submit` and `kit`, as typed."""

import json

import pytest

from cxr_study.cli import deploy
from cxr_study.data.sites import site_file
from cxr_study.deployment import deployed_run, flare_session
from cxr_study.deployment.flare_session import SessionError
from cxr_study.jobs import job_folder
from tiny_job import JOBS
from typed import typed


@pytest.fixture
def submitted(monkeypatch):
    """What was run, by which kit, and reported; a kit called "bad" is not let in."""
    runs = []

    class Session:
        def __init__(self, kit, **given):
            self.kit, self.given = kit, given

        def __enter__(self):
            self.given["on_wait"](self.given["patience"])
            if self.kit.name == "bad":
                raise SessionError("it is not let in.")

        def __exit__(self, *_):
            pass

    def run(deployed, session, steps):
        runs.append((deployed, session))
        return (deployed.folder / "1/workspace", deployed.folder / "2/workspace")

    def report(run, folder, title, to):
        runs.append((run, folder))
        return lambda: None

    monkeypatch.setattr(flare_session, "FlareSession", Session)
    monkeypatch.setattr(deployed_run, "run", run)
    monkeypatch.setattr(deploy, "make_report", report)
    return runs


@pytest.fixture
def submit(tmp_path, submitted):
    def submit(*options, kit="lead", job=JOBS / "surgical", code=0):
        given = ("--kit", tmp_path / kit, "--out", tmp_path / "out", *options)
        call = typed("deploy", "submit", job, *given)
        assert call.code == code, call.err
        return call.out + call.err

    return submit


def test_a_copy_with_the_settings_is_run_and_what_was_downloaded_is_on_record(
    submit, submitted, tmp_path
):
    asked = ("--set", "num_rounds=3", "--retries", "1", "--server-timeout", "90")
    said = submit("--sites", "a,b", *asked)
    assert "the server does not answer; waiting for up to 90 s" in said
    (deployed, session), (run, folder) = submitted
    assert (session.kit, session.given["patience"]) == (tmp_path / "lead", 90)
    assert deployed.retries == 1 and deployed.workspaces == {}
    assert job_folder.read_settings(deployed.job)["num_rounds"] == 3
    assert job_folder.sites(deployed.job) == ("a", "b")
    assert (JOBS / "surgical/app_client/custom").is_dir()
    assert not list(deployed.job.glob("*/custom"))  # not marked as bringing code
    assert json.loads((tmp_path / "out/run.json").read_text())["jobs"] == ["1", "2"]
    assert run.elsewhere and folder == tmp_path / "out/report"


def test_with_the_sites_data_the_report_may_be_full(submit, submitted, tmp_path, monkeypatch):
    monkeypatch.setattr(site_file, "read_site_file", lambda path: None)
    submit("--site-files", tmp_path, job="surgical")
    (deployed, _), (run, _) = submitted
    assert run.site_files == tmp_path and not run.elsewhere
    assert not list(deployed.job.glob("*/custom"))


def test_a_mistake_costs_nobody_an_earlier_run(submit, submitted, tmp_path):
    submit()
    submitted.clear()
    assert "needs a new folder" in submit(code=2)
    assert "it is not let in" in submit("--force", kit="bad", code=2)
    assert "nih.yaml does not" in submit("--force", "--site-files", ".", code=2)
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
def localise(kit):
    """Types `surgagg deploy kit`; what it says, and the properties of the scope that it writes."""

    def localise(kind, *options, code=0):
        call = typed("deploy", "kit", kind, kit, *options)
        assert call.code == code, call.err
        privacy = kit / "local" / "privacy.json"
        scopes = json.loads(privacy.read_text())["scopes"] if code == 0 else [{"properties": None}]
        return call.out + call.err, scopes[0]["properties"]

    return localise


def test_a_sites_options_are_its_policy_and_without_any_all_but_counts_is_shared(localise, kit):
    said, properties = localise("site")
    assert "no --site-files: CXR_SITES must say" in said
    assert properties == {"min_images": 0, "min_positives": 0, "report_counts": False}
    said, properties = localise(
        "site", "--site-files", "/data/sites", "--share", "Edema", "--share", "Mass, lung",
        "--min-images", 500, "--min-positives", 20, "--report-counts", "--force",
    )  # fmt: skip
    assert properties == {
        "share": ["Edema", "Mass, lung"], "min_images": 500, "min_positives": 20,
        "report_counts": True, "site_files": "/data/sites",
    }  # fmt: skip
    written = [kit / "local" / f"{n}.json" for n in ("resources", "privacy", "authorization")]
    assert said.splitlines() == [f"written  {path}" for path in written]


def test_the_servers_table_is_read_from_yaml_and_of_another_form_refused(localise, tmp_path):
    table = tmp_path / "permitted.yaml"
    options = ("--storage", "/data/flare", "--permitted", table)
    for text in ("", "nih: Edema", "[nih]", "nih: [1]"):
        table.write_text(text)
        said, _ = localise("server", *options, code=2)
        assert "needs a list of class names for each site" in said
    table.write_text("nih: [Edema, 'Mass, lung']\nchexpert: []\n")
    permitted = {"nih": ["Edema", "Mass, lung"], "chexpert": []}
    assert localise("server", *options)[1] == {"permitted": permitted}
