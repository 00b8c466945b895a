"""Local files of server and sites, in real startup kits."""

import json
import shutil
from pathlib import Path

import pytest
import yaml
from nvflare.app_common.default_component_policy import DEFAULT_CLASS_ALLOW_LIST
from nvflare.fuel.sec.authz import AuthzContext, Person
from nvflare.security.security import FLAuthorizer

from cxr_study.deployment.poc_project import PocProject
from cxr_study.deployment.site_kit import KitError, localise_server, localise_site
from surgical_aggregation.site.contract.site_policy import SitePolicy

POC = Path(__file__).parents[3] / "poc"

ADMIN = Person("admin@network.org", "network", "project_admin")
LEAD = Person("lead@university.org", "university", "lead")
LOCAL = Person("it@nih.hospital.org", "hospital_nih", "org_admin")


@pytest.fixture(scope="module")
def provisioned(tmp_path_factory):
    """Startup kits of the project file, as FLARE makes them."""
    folder = tmp_path_factory.mktemp("provisioned")
    PocProject.read(POC / "project.yml").provision(folder)
    return folder / "surgical_cxr" / "prod_00"


@pytest.fixture
def kits(provisioned, tmp_path):
    return Path(shutil.copytree(provisioned, tmp_path / "kits"))


def read(kit, name):
    return json.loads((kit / "local" / name).read_text())


def args(resources, id_):
    return next(c for c in resources["components"] if c["id"] == id_).get("args")


def may(kit, who, right, org):
    """Whether a site lets somebody do something."""
    authorizer = FLAuthorizer(org, read(kit, "authorization.json"))
    allowed, _ = authorizer.authorize(AuthzContext(right, who))
    return allowed


def properties(kit):
    (scope,) = read(kit, "privacy.json")["scopes"]
    return scope["properties"]


def test_a_sites_scope_holds_the_policy_with_absolute_paths_and_the_gate(kits, monkeypatch):
    monkeypatch.chdir(kits)
    localise_site(kits / "nih", SitePolicy(share=("Edema",), min_positives=20, site_files="sites"))
    privacy = read(kits / "nih", "privacy.json")
    (scope,) = privacy["scopes"]
    assert scope["name"] == privacy["default_scope"]
    found = SitePolicy(**{**scope["properties"], "share": ("Edema",)})
    assert found == SitePolicy(("Edema",), min_positives=20, site_files=str(kits / "sites"))
    assert [f["path"] for f in scope["task_result_filters"]] == [
        "surgical_aggregation.site.policy_filter.PolicyGate"
    ]


def test_the_rest_of_a_sites_resources_is_flares_but_its_error_log_stays(kits):
    file = kits / "nih" / "local" / "resources.json.default"
    default = {**json.loads(file.read_text()), "allow_log_streaming": True}  # as a kit may be made
    file.write_text(json.dumps(default))
    localise_site(kits / "nih", SitePolicy(), gpus=2, gpu_memory=40)
    own = read(kits / "nih", "resources.json")
    args(default, "resource_manager").update(num_of_gpus=2, mem_per_gpu_in_GiB=40)
    ours = [*DEFAULT_CLASS_ALLOW_LIST, "surgical_aggregation.", "cxr_study."]
    assert own == {**default, "class_allow_list": ours, "allow_log_streaming": False}


@pytest.mark.parametrize(
    ("carriers", "allowed"), [("anyone", {ADMIN, LEAD}), ("admin", {ADMIN}), ("nobody", set())]
)
def test_a_site_decides_who_may_bring_code_and_nobody_from_elsewhere_may_pry(
    kits, carriers, allowed
):
    localise_site(kits / "nih", SitePolicy(), carriers=carriers)
    for who in (ADMIN, LEAD, LOCAL):
        assert may(kits / "nih", who, "byoc", LOCAL.org) == (who in allowed)
        assert may(kits / "nih", who, "submit_job", LOCAL.org) == (who is not LOCAL)
        for right in ("cat", "grep", "report_env"):
            assert may(kits / "nih", who, right, LOCAL.org) == (who is LOCAL)


def test_what_the_server_stores_is_in_the_folder_and_nothing_in_tmp(kits):
    localise_server(kits / "server", Path("/data/flare"))
    text = (kits / "server" / "local" / "resources.json").read_text()
    assert "/tmp" not in text
    resources = json.loads(text)
    stored = resources["snapshot_persistor"]["args"]["storage"]["args"]["root_dir"]
    assert stored == "/data/flare/snapshot-storage"
    assert args(resources, "job_manager")["uri_root"] == "/data/flare/jobs-storage"
    assert args(resources, "log_receiver")["dest_dir"] == "/data/flare/logs"


def test_the_server_has_a_table_of_permitted_classes_once_one_is_given(kits):
    localise_server(kits / "server", Path("/data/flare"))
    assert not (kits / "server" / "local" / "privacy.json").exists()
    table = {"nih": ["Edema"]}
    for permitted in (table, None):  # without one, that of before stays
        localise_server(kits / "server", Path("/data/flare"), permitted=permitted, force=True)
        assert properties(kits / "server") == {"permitted": table}


def test_files_that_are_there_are_replaced_only_with_force(kits):
    localise_site(kits / "nih", SitePolicy(min_images=7))
    with pytest.raises(KitError, match=r"has its own resources\.json, privacy\.json"):
        localise_site(kits / "nih", SitePolicy(min_images=8))
    assert properties(kits / "nih")["min_images"] == 7
    localise_site(kits / "nih", SitePolicy(min_images=8), force=True)
    assert properties(kits / "nih")["min_images"] == 8


@pytest.mark.parametrize(
    ("localise", "message"),
    [
        (lambda kits: localise_site(kits / "server", SitePolicy()), "no startup kit of a site"),
        (lambda kits: localise_server(kits / LEAD.name, Path("/")), "no startup kit of the server"),
        (
            lambda kits: localise_site(kits / "nih", SitePolicy(), carriers="lead"),
            "one of anyone, admin, nobody; got 'lead'",
        ),
    ],
)
def test_a_mistake_is_told_and_writes_nothing(kits, localise, message):
    with pytest.raises(KitError, match=message):
        localise(kits)
    assert not list(kits.glob("*/local/resources.json"))


def test_what_lies_in_poc_is_what_the_commands_in_its_runbook_write(kits):
    policy = SitePolicy(
        share=("Atelectasis", "Cardiomegaly", "Edema"),
        min_images=500,
        min_positives=50,
        site_files="/data/surgical-cxr/sites",
    )
    localise_site(kits / "nih", policy, carriers="nobody")
    table = yaml.safe_load((POC / "server" / "permitted.yaml").read_text())
    localise_server(kits / "server", Path("/data/flare"), permitted=table)
    for kit, example in (
        ("nih", "site/privacy.json"), ("nih", "site/authorization.json"),
        ("server", "server/privacy.json"),
    ):  # fmt: skip
        assert read(kits / kit, Path(example).name) == json.loads((POC / example).read_text())


def test_hospitals_network_and_lead_are_organisations_and_no_error_log_is_streamed(kits):
    people = yaml.safe_load((POC / "project.yml").read_text())["participants"]
    org = {p["name"]: p["org"] for p in people}
    assert len({org[name] for name in ("server", "nih", "chexpert", LEAD.name)}) == 4
    roles = sorted((p["role"], p["org"]) for p in people if p["type"] == "admin")
    assert roles == [
        ("lead", "university"),
        ("org_admin", "hospital_chexpert"),
        ("org_admin", "hospital_nih"),
        ("project_admin", "network"),
    ]
    for site in ("nih", "chexpert"):
        assert read(kits / site, "resources.json.default")["allow_log_streaming"] is False
