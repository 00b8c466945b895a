"""A place's own files, in real startup kits."""

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
    """Whether a place lets somebody do something."""
    authorizer = FLAuthorizer(org, read(kit, "authorization.json"))
    allowed, _ = authorizer.authorize(AuthzContext(right, who))
    return allowed


class TestSite:
    def test_its_scope_holds_the_policy_and_the_gate(self, kits):
        policy = SitePolicy(share=("Edema",), min_positives=20, site_files="/data/sites")
        localise_site(kits / "nih", policy)
        privacy = read(kits / "nih", "privacy.json")
        (scope,) = privacy["scopes"]
        assert scope["name"] == privacy["default_scope"]
        assert SitePolicy(**{**scope["properties"], "share": ("Edema",)}) == policy
        assert [f["path"] for f in scope["task_result_filters"]] == [
            "surgical_aggregation.site.policy_filter.PolicyGate"
        ]

    def test_a_folder_of_site_files_is_found_from_wherever_flare_starts(self, kits, monkeypatch):
        monkeypatch.chdir(kits)
        localise_site(kits / "nih", SitePolicy(site_files="sites"))
        (scope,) = read(kits / "nih", "privacy.json")["scopes"]
        assert scope["properties"]["site_files"] == str(kits / "sites")

    def test_the_rest_of_its_resources_is_flares(self, kits):
        localise_site(kits / "nih", SitePolicy(), gpus=2, gpu_memory=40)
        own = read(kits / "nih", "resources.json")
        default = read(kits / "nih", "resources.json.default")
        ours = [*DEFAULT_CLASS_ALLOW_LIST, "surgical_aggregation.", "cxr_study."]
        assert own.pop("class_allow_list") == ours
        assert args(own, "resource_manager")["num_of_gpus"] == 2
        assert args(own, "resource_manager")["mem_per_gpu_in_GiB"] == 40
        args(default, "resource_manager").update(num_of_gpus=2, mem_per_gpu_in_GiB=40)
        default.pop("class_allow_list")
        assert own == default

    def test_its_error_log_stays_even_where_the_kit_was_made_to_stream_it(self, kits):
        default = kits / "nih" / "local" / "resources.json.default"
        streaming = {**json.loads(default.read_text()), "allow_log_streaming": True}
        default.write_text(json.dumps(streaming))
        localise_site(kits / "nih", SitePolicy())
        assert read(kits / "nih", "resources.json")["allow_log_streaming"] is False

    @pytest.mark.parametrize("right", ["cat", "grep", "report_env"])
    def test_nobody_from_elsewhere_may_pry(self, kits, right):
        localise_site(kits / "nih", SitePolicy())
        allowed = {p.name for p in (ADMIN, LEAD, LOCAL) if may(kits / "nih", p, right, LOCAL.org)}
        assert allowed == {LOCAL.name}

    @pytest.mark.parametrize(
        ("carriers", "allowed"),
        [("anyone", {ADMIN, LEAD}), ("admin", {ADMIN}), ("nobody", set())],
    )
    def test_who_may_bring_code_is_its_own_decision(self, kits, carriers, allowed):
        localise_site(kits / "nih", SitePolicy(), carriers=carriers)
        for who in (ADMIN, LEAD, LOCAL):
            assert may(kits / "nih", who, "byoc", LOCAL.org) == (who in allowed)
            assert may(kits / "nih", who, "submit_job", LOCAL.org) == (who is not LOCAL)


class TestServer:
    def test_what_it_stores_is_in_the_folder_and_nothing_in_tmp(self, kits):
        localise_server(kits / "server", Path("/data/flare"))
        text = (kits / "server" / "local" / "resources.json").read_text()
        assert "/tmp" not in text
        resources = json.loads(text)
        stored = resources["snapshot_persistor"]["args"]["storage"]["args"]["root_dir"]
        assert stored == "/data/flare/snapshot-storage"
        assert args(resources, "job_manager")["uri_root"] == "/data/flare/jobs-storage"
        assert args(resources, "log_receiver")["dest_dir"] == "/data/flare/logs"

    def test_it_has_a_table_of_permitted_classes_only_where_one_is_given(self, kits):
        localise_server(kits / "server", Path("/data/flare"))
        assert not (kits / "server" / "local" / "privacy.json").exists()
        table = {"nih": ["Edema"]}
        localise_server(kits / "server", Path("/data/flare"), permitted=table, force=True)
        (scope,) = read(kits / "server", "privacy.json")["scopes"]
        assert scope["properties"] == {"permitted": table}

    def test_a_table_of_before_stays_where_something_else_is_changed(self, kits):
        table = {"nih": ["Edema"]}
        for permitted in (table, None):
            localise_server(kits / "server", Path("/data/flare"), permitted=permitted, force=True)
        (scope,) = read(kits / "server", "privacy.json")["scopes"]
        assert scope["properties"] == {"permitted": table}


class TestMistakes:
    def test_files_of_the_place_are_replaced_only_with_force(self, kits):
        localise_site(kits / "nih", SitePolicy(min_images=7))
        with pytest.raises(KitError, match=r"has its own resources\.json, privacy\.json"):
            localise_site(kits / "nih", SitePolicy(min_images=8))
        (scope,) = read(kits / "nih", "privacy.json")["scopes"]
        assert scope["properties"]["min_images"] == 7
        localise_site(kits / "nih", SitePolicy(min_images=8), force=True)
        (scope,) = read(kits / "nih", "privacy.json")["scopes"]
        assert scope["properties"]["min_images"] == 8

    def test_a_kit_of_another_kind_is_refused(self, kits):
        with pytest.raises(KitError, match="no startup kit of a site"):
            localise_site(kits / "server", SitePolicy())
        with pytest.raises(KitError, match="no startup kit of the server"):
            localise_server(kits / LEAD.name, Path("/data/flare"))

    def test_another_word_for_who_may_bring_code_is_refused(self, kits):
        with pytest.raises(KitError, match="one of anyone, admin, nobody; got 'lead'"):
            localise_site(kits / "nih", SitePolicy(), carriers="lead")
        assert not (kits / "nih" / "local" / "resources.json").exists()


class TestExamples:
    """What lies in poc/ is what the commands in its runbook write."""

    def test_of_a_site(self, kits):
        policy = SitePolicy(
            share=("Atelectasis", "Cardiomegaly", "Edema"),
            min_images=500,
            min_positives=50,
            site_files="/data/surgical-cxr/sites",
        )
        localise_site(kits / "nih", policy, carriers="nobody")
        for name in ("privacy.json", "authorization.json"):
            assert read(kits / "nih", name) == json.loads((POC / "site" / name).read_text())

    def test_of_the_server(self, kits):
        table = yaml.safe_load((POC / "server" / "permitted.yaml").read_text())
        localise_server(kits / "server", Path("/data/flare"), permitted=table)
        example = json.loads((POC / "server" / "privacy.json").read_text())
        assert read(kits / "server", "privacy.json") == example


class TestProject:
    def test_hospitals_network_and_lead_are_organisations_of_their_own(self):
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

    def test_no_site_is_made_to_stream_its_error_log(self, kits):
        for site in ("nih", "chexpert"):
            assert read(kits / site, "resources.json.default")["allow_log_streaming"] is False
