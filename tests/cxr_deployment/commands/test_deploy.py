"""`surgagg deploy job`, `submit` and `kit`, as typed."""

import json
import re
import shutil
from functools import partial
from pathlib import Path

import pytest

from cxr_deployment import flare_session, local_workspaces
from cxr_deployment.commands import deploy
from cxr_deployment.deployed_run import DeployedRun
from cxr_study.jobs.job import Job
from cxr_study.runs.finished_run import read_facts
from tiny_job import JOBS
from tiny_model import hospital
from typed import answer

POC = Path(__file__).parents[3] / "poc"
FIRST, SECOND = "0043d777-243b-4872-a3ae-97753961216e", "f3a2a0de-9b0c-4d5e-8d55-0a6d8c0f4a11"


@pytest.fixture
def submitted(monkeypatch):
    """What was run, by which kit, and reported; a kit called "bad" is not let in."""
    runs = []

    class Session:
        def __init__(self, kit, timeout, patience, **given):
            self.kit, self.waits, self.given = kit, (timeout, patience), given

        def __enter__(self):
            self.given["on_wait"]("the server does not answer")
            if self.kit.name == "bad":
                raise flare_session.SessionError("it is not let in.")
            return self

        def __exit__(self, *_):
            pass

        def meta(self, job):
            if job == "unknown":
                raise flare_session.SessionError("no such job")

    def run(deployed):
        runs.append((deployed, deployed.session))
        if not deployed.job.is_dir():
            shutil.copytree(JOBS / "surgical", deployed.job)
        deployed.jobs = [*(deployed.jobs or "1"), "2"]
        deployed.write_facts()

    monkeypatch.setattr(flare_session, "FlareSession", Session)
    monkeypatch.setattr(DeployedRun, "run", run)
    monkeypatch.setattr(deploy, "make_report", lambda *made: runs.append(made[:2]))
    return runs


@pytest.fixture
def submit(tmp_path, submitted):
    def submit(*options, kit="lead", job=JOBS / "surgical", code=0):
        given = ("--kit", tmp_path / kit, "--out", tmp_path / "out", *options)
        return answer("deploy", "submit", job, *given, code=code)

    return submit


def test_a_copy_with_the_settings_is_run_and_the_download_on_record(submit, submitted, tmp_path):
    asked = ("--set", "num_rounds=3", "--retries", "1", "--server-timeout", "90")
    output = submit("--sites", "a,b", *asked)
    assert "the server does not answer\nconnect   lead " in output
    (deployed, session), (run, folder) = submitted
    assert (session.kit, session.waits) == (tmp_path / "lead", (60, 90))
    assert deployed.retries == 1 and deployed.workspaces == {}
    assert Job.from_folder(deployed.job).settings["num_rounds"] == 3
    assert Job.from_folder(deployed.job).sites == ("a", "b")
    assert (JOBS / "surgical/app_client/custom").is_dir()
    assert not list(deployed.job.glob("*/custom"))  # not marked as bringing code
    assert json.loads((tmp_path / "out/run.json").read_text())["jobs"] == ["1", "2"]
    assert run.facts.elsewhere and folder == tmp_path / "out/report"


def test_a_job_is_watched_by_its_id_and_the_folder_that_this_makes(submitted, tmp_path):
    def watch(what, *options, code=0):
        return answer("deploy", "watch", what, "--kit", tmp_path / "lead", *options, code=code)

    out = tmp_path / "out"
    watch("1", "--out", out)
    (first, _), (report, _) = submitted
    assert not first.aborts and first.elsewhere and report.facts.elsewhere
    assert read_facts(out).jobs == ["1", "2"]
    watch(out, "--retries", "0")
    assert submitted[2][0].retries == 0 and read_facts(out).jobs == ["1", "2", "2"]
    watch("1", "--phantom", "--out", tmp_path / "more")
    assert not submitted[-1][0].facts.elsewhere
    assert "no such job" in watch("unknown", "--out", tmp_path / "none", code=2)
    assert not (tmp_path / "none").exists()
    (tmp_path / "none").mkdir()
    (tmp_path / "none/run.json").write_text("{}")
    assert "was made in FLARE's simulator" in watch(tmp_path / "none", code=2)
    (tmp_path / "none/run.json").unlink()
    assert "is not the folder of a deployed run" in watch(tmp_path / "none", code=2)


def test_with_the_sites_data_the_report_may_be_full(submit, submitted, tmp_path, monkeypatch):
    monkeypatch.setattr(deploy, "check_sites", lambda site_files, sites: None)
    submit("--site-files", tmp_path, job="surgical")
    (deployed, _), (run, _) = submitted
    assert run.facts.site_files == tmp_path and not run.facts.elsewhere
    assert not list(deployed.job.glob("*/custom"))


def test_a_mistake_keeps_an_earlier_run(submit, submitted, tmp_path, monkeypatch):
    submit("--server-timeout", "0.5")
    assert submitted.pop(0)[1].waits == (0.5, 0.5)
    submitted.clear()
    assert "needs a new folder" in submit(code=2)
    assert "it is not let in" in submit("--force", kit="bad", code=2)
    assert "nih.yaml does not" in submit("--force", "--site-files", ".", code=2)
    assert "which the new run needs" in submit("--force", job=tmp_path / "out/job", code=2)

    def broken(kit):
        raise PermissionError(f"{kit}: no")

    monkeypatch.setattr(local_workspaces, "workspaces", broken)
    assert "lead: no" in submit("--force", code=2)
    assert submitted == [] and (tmp_path / "out/run.json").is_file()


def test_a_job_that_does_not_check_its_sites_is_not_checked():
    refusal = answer("deploy", "check", "census", "--kit", POC, code=2)
    assert "'census' does not check its sites" in refusal and "Traceback" not in refusal


def test_a_job_is_a_folder_with_everything_set_and_no_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = (
        "--strategy", "fedbn", "--sites", "a, b", "--preset", "paper", "--set", "num_rounds=3",
        "--set", "b:epochs=2", "--out", "new/job",
    )  # fmt: skip
    output = answer("deploy", "job", "personalised", *options)
    assert output.splitlines() == [
        "job      new/job",
        "sites    a, b",
        "check    surgagg deploy check new/job --kit <your startup kit>",
        "submit   surgagg deploy submit new/job --kit <your startup kit> --out <new folder>",
    ]
    assert "deploy check" not in answer("deploy", "job", "census", "--out", "census")
    assert "deploy submit 'a b' --kit" in answer("deploy", "job", "surgical", "--out", "a b")
    job = tmp_path / "new/job"
    made = Job.from_folder(job)
    wanted = {"strategy": "fedbn", "num_rounds": 3, "patience": 0, "warmup_epochs": 15, "epochs": 2}
    assert {name: getattr(made.at("b"), name) for name in wanted} == wanted
    assert made.folder.apps == {"a": "app_client", "b": "app_b"}
    assert not list(job.glob("*/custom"))
    assert "new/job" in answer("deploy", "job", "personalised", *options, code=2)


kit = partial(answer, "deploy", "kit")


def properties(kit):
    (scope,) = json.loads((kit / "local" / "privacy.json").read_text())["scopes"]
    return scope["properties"]


def test_what_lies_in_poc_is_what_the_commands_in_its_runbook_write(kits):
    output = kit(
        "site", kits / "nih", "--site-files", "/data/surgical-cxr/sites", "--byoc", "nobody",
        *(word for name in ("Atelectasis", "Cardiomegaly", "Edema") for word in ("--share", name)),
        "--min-images", 500, "--min-positives", 50,
    )  # fmt: skip
    local = kits / "nih" / "local"
    written = [local / f"{name}.json" for name in ("resources", "privacy", "authorization")]
    policy = f"policy   {json.dumps(properties(kits / 'nih'))}"
    *lines, note = output.splitlines()
    grants = "grants   code by nobody"
    assert lines == [*(f"written  {path}" for path in written), grants, policy]
    missing = "site file /data/surgical-cxr/sites/nih.yaml does not exist."
    assert note == f"note     the names of --share were not checked: {missing}"
    table = POC / "server" / "permitted.yaml"
    output = kit("server", kits / "server", "--storage", "/data/flare", "--permitted", table)
    assert re.search(r"^permits  nih: Atelectasis, Cardiomegaly, ", output, re.M)
    examples = ("nih", "site/privacy"), ("nih", "site/authorization"), ("server", "server/privacy")
    for party, example in examples:
        file = POC / f"{example}.json"
        made = kits / party / "local" / file.name
        assert json.loads(made.read_text()) == json.loads(file.read_text())


def test_without_options_a_site_shares_all_but_counts_and_features(kits):
    assert "no --site-files: set CXR_SITES to their folder" in kit("site", kits / "nih")
    limits = {"min_images": 0, "min_positives": 0}
    reports = dict.fromkeys(("report_counts", "report_features", "refuse_union_head"), False)
    assert properties(kits / "nih") == {**limits, **reports}
    more = ("--report-counts", "--report-features", "--refuse-union-head")
    kit("site", kits / "nih", "--share", "Mass, lung", *more, "--force")
    expected = {"share": ["Mass, lung"], **limits, **dict.fromkeys(reports, True)}
    assert properties(kits / "nih") == expected
    output = kit("site", kits / "nih", "--gpus", 1, "--no-report-counts", "--force")
    assert properties(kits / "nih") == {**expected, "report_counts": False}
    assert '"share": ["Mass, lung"], ' in output and '"report_counts": false, ' in output


def test_a_site_shares_only_classes_that_its_file_has(kits, tmp_path):
    (kits / "nih").rename(kits / "renamed")
    hospital(tmp_path, ["train"] * 4, folder=".", Edema=[0, 1] * 2, Mass=[1, 0] * 2)
    (tmp_path / "a.yaml").rename(tmp_path / "nih.yaml")
    options = ("site", kits / "renamed", "--site-files", tmp_path, "--share", "Mass", "--share")
    refusal = kit(*options, "Edma", code=2)
    assert f"{tmp_path}/nih.yaml has the classes Edema, Mass, and no 'Edma' to share" in refusal
    assert "nearest known: Edema" in refusal
    assert not (kits / "renamed/local/privacy.json").exists()
    assert "not checked" not in kit(*options, "Edema")
    assert properties(kits / "renamed")["share"] == ["Mass", "Edema"]
    assert "not checked: no --site-files" in kit("site", kits / "chexpert", "--share", "Edma")
    note = f"note     site file {tmp_path}/none/nih.yaml does not exist."
    assert note in kit(*options[:2], "--site-files", tmp_path / "none", "--force")
    output = kit(*options[:2], "--site-files", "phantom", "--force")
    assert properties(kits / "renamed")["site_files"] == "phantom" and "note" not in output
    assert "no startup kit of a site" in kit("site", kits / "server", *options[2:], "X", code=2)


def test_a_servers_table_of_another_form_is_refused(kits, tmp_path):
    table = tmp_path / "permitted.yaml"
    options = ("--storage", "/data/flare", "--permitted", table)
    lists, lines = "needs a list of class names for each site", "needs lines 'key: value'"
    wrong = {"": lines, "[nih]": lines, "nih: [": "YAML"}
    wrong |= dict.fromkeys(("nih: Edema", "nih: [1]", "heart: {nih: Edema}"), lists)
    for text, need in wrong.items():
        table.write_text(text)
        assert need in kit("server", kits / "server", *options, code=2)
    table.write_text("nih: [Edema, 'Mass, lung']\nchexpert: []\n")
    kit("server", kits / "server", *options)
    permitted = {"nih": ["Edema", "Mass, lung"], "chexpert": []}
    assert properties(kits / "server") == {"permitted": permitted}
    table.write_text("heart: {nih: [Edema]}\n")
    kit("server", kits / "server", *options, "--force")
    assert properties(kits / "server") == {"permitted": {"heart": {"nih": ["Edema"]}}}


class TestJobs:
    """What jobs have left in a kit."""

    @pytest.fixture
    def kit(self, tmp_path):
        (tmp_path / "startup").mkdir()
        for job in (FIRST, SECOND):
            folder = tmp_path / "checkpoints" / job
            folder.mkdir(parents=True)
            (folder / "last.npz").write_bytes(bytes(3 * 2**20))
        facts = {"name": "surgical\x1b[2J", "status": "RUNNING", "submitter_name": "lead"}
        (folder / "meta").write_text(json.dumps(facts))
        return tmp_path

    def test_it_is_listed_and_stays(self, kit):
        output = answer("deploy", "jobs", kit)
        left = "3.0 MB 0.0 days"
        assert [" ".join(line.split()) for line in output.splitlines()] == [
            f"{FIRST} {left}", rf"{SECOND} {left} surgical\x1b[2J RUNNING lead running: stays",
        ]  # fmt: skip
        assert len([*kit.glob("checkpoints/*")]) == 2

    def test_that_of_one_job_is_removed_and_that_of_a_running_one_stays(self, kit):
        output = answer("deploy", "jobs", kit, "--job", FIRST, "--remove")
        assert " ".join(output.split()) == f"{FIRST} 3.0 MB 0.0 days removed"
        output = answer("deploy", "jobs", kit, "--job", SECOND, "--remove")
        assert "running: stays" in output
        assert [path.name for path in kit.glob("checkpoints/*")] == [SECOND]
        output = answer("deploy", "jobs", kit, "--older-than", "3", "--remove")
        assert output == "no files of such jobs\n"

    def test_all_of_it_is_not_removed_by_accident(self, kit):
        assert "needs --job or --older-than" in answer("deploy", "jobs", kit, "--remove", code=2)
        unknown = answer("deploy", "jobs", kit, "--job", "third", code=2)
        assert "has no files of job third" in unknown
        assert len([*kit.glob("checkpoints/*")]) == 2
