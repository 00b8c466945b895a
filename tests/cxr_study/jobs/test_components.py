"""What a job without code may name, by FLARE's own authorization and a real kit's allow-list."""

import importlib
import inspect
import json
import re
import symtable
from pathlib import Path

import pytest
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.workspace import Workspace
from nvflare.app_common.default_component_policy import DEFAULT_CLASS_ALLOW_LIST
from nvflare.fuel.common.excepts import ComponentNotAuthorized
from nvflare.private.fed.utils.fed_utils import authorize_build_component
from nvflare.private.json_configer import JsonConfigurator

from cxr_study.deployment.poc_project import PocProject
from cxr_study.deployment.site_kit import localise_server, localise_site
from cxr_study.jobs.components import ALLOWED, PATHS
from surgical_aggregation.site.contract.site_policy import SitePolicy

ROOT = Path(__file__).parents[3]
JOB = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
GUARD = "surgical_aggregation.byoc_check.ByocCheck"
REPLACE = {"path": "cxr_study.common.files.replace", "args": {"path": "a", "content": "b"}}
SHELL = {
    "path": "cxr_study.deployment.processes.start",
    "args": {"kit": "/", "environment": {"BASH_FUNC_dirname%%": "() { touch /tmp/owned; }"}},
}


@pytest.fixture(scope="module")
def kits(tmp_path_factory):
    """Kits of a site and of the server, whose jobs bring no code."""
    folder = tmp_path_factory.mktemp("provisioned")
    PocProject.read(ROOT / "poc" / "project.yml").provision(folder)
    kits = folder / "surgical_cxr" / "prod_00"
    localise_site(kits / "nih", SitePolicy(), byoc="nobody")
    localise_server(kits / "server", folder / "storage", byoc="nobody")
    for name in ("nih", "server"):
        (kits / name / JOB).mkdir()
        (kits / name / JOB / "meta.json").write_text(json.dumps({"byoc": False}))
    return kits


@pytest.fixture(params=["nih", "server"])
def build(kits, tmp_path, request):
    """FLARE's builder of a job's components there."""
    fl_ctx = FLContext()
    workspace = Workspace(str(kits / request.param), request.param)
    fl_ctx.set_prop(FLContextKey.WORKSPACE_OBJECT, workspace, private=True)
    fl_ctx.set_prop(FLContextKey.CURRENT_JOB_ID, JOB, private=True)
    (tmp_path / "config.json").write_text("{}")
    configurator = JsonConfigurator([str(tmp_path / "config.json")], ["nvflare"], ["apis"])
    configurator.set_component_build_authorizer(
        authorize_build_component, fl_ctx=fl_ctx, event_handlers=[]
    )
    return configurator.build_component


def everything():
    """Paths of all that a module of either package names, its imports too."""
    for package in ("components/surgical_aggregation", "custom/cxr_study"):
        for file in (ROOT / package).rglob("*.py"):
            parts = file.relative_to((ROOT / package).parent).with_suffix("").parts
            module = ".".join(parts).removesuffix(".__init__")
            for name in symtable.symtable(file.read_text(), file.name, "exec").get_identifiers():
                yield f"{module}.{name}"


def test_it_is_components_alone_each_of_them_one_that_flare_allows_or_ours():
    for path in ALLOWED:
        module, _, name = path.rpartition(".")
        found = getattr(importlib.import_module(module), name)
        assert inspect.isclass(found) and issubclass(found, FLComponent), path
        assert not inspect.isabstract(found) and found.__module__ == module, path
        assert path in DEFAULT_CLASS_ALLOW_LIST or not path.startswith("nvflare."), path
    assert len(PATHS) == len(ALLOWED) == len(set(ALLOWED))


def test_the_jobs_name_these_alone_and_ours_are_all_named():
    folders = ("jobs", "custom/cxr_study/jobs/templates")
    files = [
        f
        for folder in folders
        for kind in ("conf", "j2")
        for f in (ROOT / folder).rglob(f"*.{kind}")
    ]
    text = "".join(file.read_text() for file in files)
    named = set(re.findall(r'path = "([\w.]+)"', text)) - {GUARD}
    assert named <= set(ALLOWED)
    ours = {path for path in ALLOWED if not path.startswith("nvflare.")}
    assert ours <= named


def test_nothing_else_of_either_package_is_built_not_as_an_argument_either(build):
    names = set(everything()) - set(ALLOWED)
    assert {REPLACE["path"], SHELL["path"], GUARD} < names
    site = {"path": PATHS["ChestXraySite"], "args": {"site": "nih"}}
    for path in sorted(names):
        inner = {"path": path, "args": {}}
        for hostile in (inner, {**site, "args": {"site": inner}}):
            with pytest.raises(ComponentNotAuthorized, match=f"{path}.* is not in allow_list"):
                build(hostile)
    assert build(site).site == "nih"


@pytest.mark.parametrize(
    "config",
    [
        REPLACE,
        SHELL,
        {"class_path": REPLACE["path"], "args": REPLACE["args"]},
        {"path": "nvflare.app_common.np.np_model_persistor.NPModelPersistor", "args": {}},
        {"path": "subprocess.Popen", "args": {"args": "touch /tmp/owned", "shell": True}},
        {"path": PATHS["ChestXraySite"] + ".read_site_file", "args": {}},
    ],
)
def test_what_ran_as_the_services_user_is_refused(build, config):
    with pytest.raises(
        (ComponentNotAuthorized, ValueError, TypeError), match=r"not in allow_list|load"
    ):
        build(config)
