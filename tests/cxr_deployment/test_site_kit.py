"""Local files of server and sites, in real startup kits."""

import json
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from nvflare.fuel.sec.authz import AuthzContext, Person
from nvflare.security.security import FLAuthorizer

from cxr_deployment import site_kit
from cxr_deployment.site_kit import KitError, granted, localise_server, localise_site
from cxr_study.jobs.components import ALLOWED
from surgical_aggregation.site.contract.site_policy import SitePolicy

REQUESTS = "surgical_aggregation.kit.site_requests.SiteRequests"
GUARD = "surgical_aggregation.kit.job_guard.JobFiles"
VARIABLES = ("CXR_INITIAL_BODY", "CXR_MODEL", "CXR_SITES")
OURS = ["surgical-aggregation"]
OWN = "surgical_aggregation"
GROUPS = (f"{OWN}.strategies", f"{OWN}.weightings", "cxr_study.backbones")
"""Of entry points: parts that a job may name."""

POC = Path(__file__).parents[2] / "poc"

ADMIN = Person("admin@network.org", "network", "project_admin")
LEAD = Person("lead@university.org", "university", "lead")
LOCAL = Person("it@nih.hospital.org", "hospital_nih", "org_admin")


def read(kit, name):
    return json.loads((kit / "local" / name).read_text())


def args(resources, id_):
    return next(c for c in resources["components"] if c["id"] == id_).get("args")


def may(kit, who, right, org):
    """Whether a site permits an action."""
    authorizer = FLAuthorizer(org, read(kit, "authorization.json"))
    allowed, _ = authorizer.authorize(AuthzContext(right, who))
    return allowed


def test_a_sites_files_are_flares_with_its_policy_and_its_error_log_kept_there(kits, monkeypatch):
    monkeypatch.chdir(kits)
    nih = kits / "nih"
    file = nih / "local" / "resources.json.default"
    default = {**json.loads(file.read_text()), "allow_log_streaming": True}  # as a kit may be made
    file.write_text(json.dumps(default))
    localise_site(nih, {}, gpus=2, gpu_memory=40)
    args(default, "resource_manager").update(num_of_gpus=2, mem_per_gpu_in_GiB=40)
    guard = {"variables": list(VARIABLES), "packages": dict.fromkeys(GROUPS, OURS)}
    changed = {
        **default, "class_allow_list": list(ALLOWED), "class_list_enforcement_mode": "enforce",
        "components": [*default["components"], {"id": "site_requests", "path": REQUESTS}],
        "allow_log_streaming": False, "app_validator": {"path": GUARD, "args": guard},
    }  # fmt: skip
    assert read(nih, "resources.json") == changed
    # FLARE looks for these in every folder of the kit, a job's too, and here first.
    assert (nih / "resources.json").samefile(nih / "local/resources.json")
    assert (nih / "fed_client.json").samefile(nih / "startup/fed_client.json")
    assert json.loads((nih / "comm_config.json").read_text()) == {}

    policy = {"share": ["Edema"], "min_positives": 20, "site_files": "sites"}
    with pytest.raises(KitError, match=r"has its own resources\.json, privacy\.json"):
        localise_site(nih, policy)
    assert read(nih, "resources.json") == changed
    localise_site(nih, policy, force=True)
    privacy = read(nih, "privacy.json")
    assert privacy["components"] == [{"id": "site_requests", "path": REQUESTS}]
    (scope,) = privacy["scopes"]
    found = SitePolicy(**{**scope["properties"], "share": ("Edema",)})
    assert found == SitePolicy(("Edema",), min_positives=20, site_files=str(kits / "sites"))


def test_what_a_site_has_set_stays_where_nothing_else_is_given(kits):
    file = kits / "nih/local/privacy.json"
    localise_site(kits / "nih", {"share": ["Edema"], "min_positives": 20, "site_files": "sites"})
    written = file.read_text()
    localise_site(kits / "nih", {}, gpus=1, force=True)
    assert file.read_text() == written
    edited = json.loads(written)
    edited["scopes"][0]["task_result_filters"].append({"path": "own.Noise", "args": {"sigma": 1}})
    edited["scopes"].insert(0, {"name": "other", "properties": {"share": ["Mass"]}})
    edited["components"].append({"id": "own", "path": "own.Part"})
    file.write_text(json.dumps(edited))
    localise_site(kits / "nih", {"min_positives": 0}, force=True)
    edited["scopes"][1]["properties"]["min_positives"] = 0
    assert json.loads(file.read_text()) == edited


@pytest.mark.parametrize("byoc", ["anyone", "admin", "nobody"])
def test_gpus_code_and_allowed_parts_stay_where_only_the_policy_changes(kits, monkeypatch, byoc):
    offered = [SimpleNamespace(dist=SimpleNamespace(name="radiology-parts"))]
    monkeypatch.setattr(site_kit, "entry_points", lambda group: offered)
    own = {"byoc": byoc, "allow": ["parts.SiloBN", "radiology-parts"]}
    localise_site(kits / "nih", {}, gpus=2, gpu_memory=40, **own)
    localise_server(kits / "server", Path("/data/flare"), **own)
    files = [file for file in kits.glob("*/local/*.json") if file.name != "privacy.json"]
    written = {file: file.read_text() for file in files}
    localise_site(kits / "nih", {"min_positives": 9}, force=True)
    localise_server(kits / "server", Path("/data/flare"), permitted={}, force=True)
    assert len(files) == 4 and written == {file: file.read_text() for file in files}
    words = f"code by {byoc}, allowed: parts.SiloBN, radiology-parts"
    assert granted(kits / "nih") == granted(kits / "server") == words
    localise_site(kits / "nih", {}, gpus=0, byoc="nobody", allow=["parts.Other"], force=True)
    resources = read(kits / "nih", "resources.json")
    managed = args(resources, "resource_manager")
    assert (managed["num_of_gpus"], managed["mem_per_gpu_in_GiB"]) == (0, 40)
    assert resources["class_allow_list"] == [*ALLOWED, "parts.Other"]
    assert not may(kits / "nih", ADMIN, "byoc", LOCAL.org)


def test_a_hospitals_own_files_decide_nothing_and_one_of_ours_that_is_damaged_is_named(kits):
    local = kits / "nih/local"
    (local / "authorization.json").write_text((local / "authorization.json.default").read_text())
    (local / "resources.json").write_text("{bad")
    localise_site(kits / "nih", {}, force=True)
    assert not may(kits / "nih", LEAD, "byoc", LOCAL.org)
    for name in ("resources.json", "authorization.json"):
        text = (local / name).read_text()
        (local / name).write_text(text[:-3])
        with pytest.raises(KitError, match=f"{name} is no JSON .* remove it"):
            localise_site(kits / "nih", {}, force=True)
        (local / name).write_text(text)


@pytest.mark.parametrize("text", [
    "{bad", "[]", "{}", '{"scopes": [], "default_scope": "cxr"}',
    '{"scopes": [{"name": "cxr"}], "default_scope": "cxr"}',
    '{"scopes": [{"name": "cxr", "properties": {}}], "default_scope": "other"}',
])  # fmt: skip
def test_a_privacy_json_without_a_default_scope_is_refused_and_stays(kits, text):
    site = partial(localise_site, kits / "nih", {})
    server = partial(localise_server, kits / "server", Path("/data"), permitted={})
    for party, localise in {"nih": site, "server": server}.items():
        file = kits / party / "local/privacy.json"
        file.write_text(text)
        with pytest.raises(KitError, match=r"privacy\.json needs 'scopes', of which one has"):
            localise(force=True)
        assert file.read_text() == text


@pytest.mark.parametrize(("byoc", "allowed"), [
    ({"byoc": "anyone"}, {ADMIN, LEAD}), ({"byoc": "admin"}, {ADMIN}), ({}, set()),
])  # fmt: skip
def test_a_site_decides_who_brings_code_and_no_other_organisation_reads_files(kits, byoc, allowed):
    localise_site(kits / "nih", {}, **byoc)
    assert (kits / "nih" / "local" / "privacy.json").stat().st_mode & 0o777 == 0o600
    for who in (ADMIN, LEAD, LOCAL):
        assert may(kits / "nih", who, "byoc", LOCAL.org) == (who in allowed)
        assert may(kits / "nih", who, "submit_job", LOCAL.org) == (who is not LOCAL)
        for right in ("cat", "grep", "report_env"):
            assert may(kits / "nih", who, right, LOCAL.org) == (who is LOCAL)


def test_errors_of_a_job_are_shown_to_those_who_may_download_it_and_its_progress_to_all(kits):
    localise_server(kits / "server", Path("/data/flare"))
    authorizer = FLAuthorizer("network", read(kits / "server", "authorization.json"))
    member = Person("member@nih.hospital.org", LOCAL.org, "member")
    for who, submitter, own in (
        (ADMIN, LEAD, True), (LEAD, LEAD, True), (LEAD, ADMIN, False), (LOCAL, LEAD, False),
        (member, LEAD, False),
    ):  # fmt: skip
        for right in ("show_errors", "reset_errors", "download_job", "show_stats"):
            allowed, _ = authorizer.authorize(AuthzContext(right, who, submitter))
            assert allowed == (own or right == "show_stats")


def test_the_server_stores_nothing_in_tmp_and_has_a_table_once_one_is_given(kits):
    local = kits / "server" / "local"
    localise_server(kits / "server", Path("/data/flare"))
    assert "/tmp" not in (local / "resources.json").read_text()
    resources = read(kits / "server", "resources.json")
    assert resources["class_allow_list"] == list(ALLOWED)
    assert resources["class_list_enforcement_mode"] == "enforce"
    stored = resources["snapshot_persistor"]["args"]["storage"]["args"]["root_dir"]
    assert stored == "/data/flare/snapshot-storage"
    assert args(resources, "job_manager")["uri_root"] == "/data/flare/jobs-storage"
    parts = {part["id"] for part in resources["components"]}
    assert {"job_ids", "server_requests"} <= parts and "log_receiver" not in parts
    assert resources["app_validator"]["path"] == GUARD
    assert not (local / "privacy.json").exists()
    table = {"nih": ["Edema"]}
    for permitted in (table, None):  # without one, that of before stays
        localise_server(kits / "server", Path("/data/flare"), permitted=permitted, force=True)
        (scope,) = read(kits / "server", "privacy.json")["scopes"]
        assert scope["properties"] == {"permitted": table}
    scope["properties"]["look_alikes"] = "refuse"
    other = {"name": "other", "properties": {"permitted": table}}
    privacy = {"scopes": [other, scope], "default_scope": "cxr"}
    (local / "privacy.json").write_text(json.dumps(privacy))
    localise_server(kits / "server", Path("/data/flare"), permitted={}, force=True)
    scope["properties"]["permitted"] = {}
    assert read(kits / "server", "privacy.json") == privacy


def test_a_kit_allows_classes_and_packages_by_name(kits, monkeypatch):
    offered = [SimpleNamespace(dist=SimpleNamespace(name="radiology-parts"))]
    monkeypatch.setattr(site_kit, "entry_points", lambda group: offered)
    own = ["radiology_parts.method.SiloBN", "radiology-parts"]
    localise_site(kits / "nih", {}, allow=own)
    resources = read(kits / "nih", "resources.json")
    assert resources["class_allow_list"] == [*ALLOWED, own[0]]
    packages = resources["app_validator"]["args"]["packages"]
    assert packages == {group: [*OURS, own[1]] for group in GROUPS}
    with pytest.raises(KitError, match=r"\(radiology-parts\), may be allowed; got os\.system"):
        localise_site(kits / "nih", {}, allow=["os.system"], force=True)


@pytest.mark.parametrize(("localise", "message"), [
    (lambda kits: localise_site(kits / "server", {}), "no startup kit of a site"),
    (lambda kits: localise_server(kits / LEAD.name, Path("/")), "no startup kit of the server"),
    (lambda kits: localise_site(kits / "nih", {}, byoc="lead"),
     "one of anyone, admin, nobody; got 'lead'"),
])  # fmt: skip
def test_a_mistake_is_refused_and_writes_nothing(kits, localise, message):
    with pytest.raises(KitError, match=message):
        localise(kits)
    assert not list(kits.glob("*/local/resources.json"))


def test_hospitals_network_and_lead_are_organisations_and_no_error_log_is_streamed(kits):
    people = yaml.safe_load((POC / "project.yml").read_text())["participants"]
    org = {p["name"]: p["org"] for p in people}
    assert len({org[name] for name in ("server", "nih", "chexpert", LEAD.name)}) == 4
    roles = {(p["role"], p["org"]) for p in people if p["type"] == "admin"}
    hospitals = {("org_admin", "hospital_nih"), ("org_admin", "hospital_chexpert")}
    assert roles == {("lead", "university"), ("project_admin", "network"), *hospitals}
    for site in ("nih", "chexpert"):
        assert read(kits / site, "resources.json.default")["allow_log_streaming"] is False
