"""What a job without code may hold, in the folders that jobs are and in hostile ones."""

import json
import re
import shutil

import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey

from flare import context
from surgical_aggregation.kit.job_guard import JobFiles, JobIds
from tiny_job import JOBS

CLIENT = "config/config_fed_client.conf"


@pytest.fixture
def validated(tmp_path):
    """The guard's verdict on an app with such files."""

    def validated(**files):
        for name, text in {CLIENT: "tasks = []", **files}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return JobFiles(["CXR_SITES"]).validate(str(tmp_path))

    return validated


@pytest.mark.parametrize("app", sorted(JOBS.glob("*/app_*")), ids=lambda app: str(app)[-30:])
def test_the_jobs_of_this_software_are_taken_with_and_without_their_marker(app, tmp_path):
    guard = JobFiles(["CXR_SITES", "CXR_MODEL", "CXR_INITIAL_BODY"])
    shutil.copytree(app / "config", tmp_path / "config")
    (tmp_path / ".__nvfl_sig.json").write_text("{}")
    assert guard.validate(str(app)) == guard.validate(str(tmp_path)) == ("", {})


@pytest.mark.parametrize("name", [
    "config/comm_config.json", "config/resources.json", "config/evil.py", "fed_client.json",
    "config/deco/__init__.py", "config/config_fed_client.yml", "other/config_fed_client.conf",
])  # fmt: skip
def test_a_file_that_flare_might_find_or_import_is_refused(validated, name):
    reason = "a job without code may have only its configuration files; this one has '"
    assert validated(**{name: "{}"})[0].startswith(reason + name.rpartition("/")[0])


@pytest.mark.parametrize(("text", "reason"), [
    ('stolen { include file("/etc/passwd") }', "may not use 'include'"),
    ('INCLUDE url("http://127.0.0.1/x")', "may not use 'INCLUDE'"),
    ('x { include required("x") }', "may not use 'include'"),
    ('a = 1include"/etc/passwd"', "may not use 'include'"),
    ("pw = ${SITE_SECRET}", "may not use '${'"),
    ('pw = "{$SITE_SECRET}"', "got '{$SITE_SECRET}'"),
    ('pw = "{""$SITE_SECRET}"', "got '{$SITE_SECRET}'"),
    ('pw = "x{$CXR_SITES}"', "got 'x{$CXR_SITES}'"),
    ('d = "$", pw = "{{{d}SITE_SECRET}}"', "got '{{{d}SITE_SECRET}}'"),
    ('p = "{", d = "$"', "got '{'"),
    ('components = [{ args { a = ["{a.__class__}"] } }]', "got '{a.__class__}'"),
    ('"{$SITE_SECRET}" = 1', "got '{$SITE_SECRET}'"),
])  # fmt: skip
def test_a_setting_that_refers_to_more_than_settings_is_refused(validated, text, reason):
    assert reason in validated(**{CLIENT: text})[0]


@pytest.mark.parametrize(("name", "text"), [
    (CLIENT, "tasks = ["), (CLIENT, b"\xff"), ("config/config_fed_server.json", ""),
    ("config/config_fed_server.json", "{"),
])  # fmt: skip
def test_a_configuration_that_cannot_be_read_is_named(validated, name, text):
    assert f"{name} cannot be read: " in validated(**{name: text})[0]


def test_references_to_settings_and_the_variables_of_the_kit_are_taken(validated):
    text = 'sites = "{$CXR_SITES}", x { args { a = "{sites}", exclude = "(beta|gamma)$" } }'
    assert validated(**{CLIENT: f"# what it has\n{text}"}) == ("", {})


@pytest.mark.parametrize(("part", "allowed", "mode", "reason"), [
    ('"a"', ["mine.gone.Old", "nvflare.apis.filter.Filter"], "enforce",
     r"lacks 'mine\.New', and has 'mine\.gone\.Old', which no longer exist\. .*installed classes"),
    ('"a"', ["nvflare.apis.filter.Filter"], "enforce", r"lacks 'mine\.New'\. If the list was made"),
    *(('"a"', [allowed], "enforce", "$") for allowed in ("mine.New", "mine.", "*")),
    ('"a"', [], "warn", "$"),
    ('{ path = "os.system", args { command = "id" } }', ["mine.New"], "enforce", "lacks 'os.sys"),
    ('{ path = "my_parts.SiloBN" }', ["mine.New"], "enforce", "lacks 'my_parts.SiloBN'"),
    ('"os:system"', ["mine.New"], "enforce", "$"),  # a name is never imported: no part has it
])  # fmt: skip
def test_a_class_that_the_kit_does_not_allow_is_named(tmp_path, part, allowed, mode, reason):
    kit, app = tmp_path / "kit", tmp_path / "kit/job/app_nih"
    for folder in (kit / "local", app / "config"):
        folder.mkdir(parents=True)
    policy = {"class_allow_list": allowed, "class_list_enforcement_mode": mode}
    (kit / "local/resources.json").write_text(json.dumps(policy))
    arguments = f'path = "an argument", strategy = {part}'
    text = f'executors = [{{ executor {{ path = "mine.New", args {{ {arguments} }} }} }}]'
    (app / CLIENT).write_text(text)
    fault, _ = JobFiles().validate(str(app))
    assert re.match(f"(class_allow_list in this kit's local/resources.json )?{reason}", fault)


@pytest.mark.parametrize(("allowed", "refused"), [([], True), (["radiology-parts"], False)])
def test_a_part_counts_where_the_kit_names_its_package(tmp_path, monkeypatch, allowed, refused):
    group, info = "surgical_aggregation.strategies", tmp_path / "radiology_parts-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: radiology-parts\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{group}]\nsilobn = radiology_parts:SiloBN\n")
    monkeypatch.syspath_prepend(tmp_path)
    app = tmp_path / "app"
    (app / "config").mkdir(parents=True)
    (app / CLIENT).write_text('executors = [{ executor { args { strategy = "silobn" } } }]')
    fault, _ = JobFiles(packages={group: allowed}).validate(str(app))
    assert ("add 'radiology-parts' to 'packages' of JobFiles" in fault) is refused


@pytest.mark.parametrize(("meta", "blocked"), [({"job_id": "local"}, True), ({"name": "x"}, False)])
def test_a_submission_with_an_id_of_its_own_is_blocked(meta, blocked):
    fl_ctx = context(props={FLContextKey.JOB_META: meta})
    JobIds().handle_event(EventType.SUBMIT_JOB, fl_ctx)
    assert bool(fl_ctx.get_prop(FLContextKey.JOB_BLOCK_REASON)) is blocked
