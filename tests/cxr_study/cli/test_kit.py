"""The commands that localise a startup kit, as typed."""

import json

import pytest
from typer.testing import CliRunner

from cxr_study.cli import kit as cli_kit
from cxr_study.deployment.site_kit import KitError

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


def surgagg(*arguments):
    """Type a command; what it prints. A user's mistake is raised."""
    result = CliRunner().invoke(cli_kit.app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def properties(kit):
    (scope,) = json.loads((kit / "local" / "privacy.json").read_text())["scopes"]
    return scope["properties"]


def test_a_sites_options_are_its_policy_and_the_files_are_listed(kit):
    said = surgagg(
        "site", kit, "--site-files", "/data/sites", "--share", "Edema", "--share", "Mass, lung",
        "--min-images", 500, "--min-positives", 20, "--report-counts",
    )  # fmt: skip
    assert properties(kit) == {
        "share": ["Edema", "Mass, lung"],
        "min_images": 500,
        "min_positives": 20,
        "report_counts": True,
        "site_files": "/data/sites",
    }
    written = [kit / "local" / f"{n}.json" for n in ("resources", "privacy", "authorization")]
    assert said.splitlines() == [f"written  {path}" for path in written]


def test_without_options_all_is_shared_and_no_counts_are(kit):
    assert "no --site-files: CXR_SITES must say" in surgagg("site", kit)
    assert properties(kit) == {"min_images": 0, "min_positives": 0, "report_counts": False}


def test_the_servers_table_is_read_from_yaml(kit, tmp_path):
    table = tmp_path / "permitted.yaml"
    table.write_text("nih: [Edema, 'Mass, lung']\nchexpert: []\n")
    surgagg("server", kit, "--storage", "/data/flare", "--permitted", table)
    permitted = {"nih": ["Edema", "Mass, lung"], "chexpert": []}
    assert properties(kit) == {"permitted": permitted}


@pytest.mark.parametrize("text", ["", "nih: Edema", "[nih]", "nih: [1]"])
def test_a_table_of_another_form_is_refused(kit, tmp_path, text):
    table = tmp_path / "permitted.yaml"
    table.write_text(text)
    with pytest.raises(KitError, match="needs a list of class names for each site"):
        surgagg("server", kit, "--storage", "/data/flare", "--permitted", table)
