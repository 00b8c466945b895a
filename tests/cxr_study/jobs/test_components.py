"""What a job without code may name, by FLARE's own authorization; `test_site_kit` has the kits."""

import inspect
import json
import pydoc
import symtable
from pathlib import Path

import pytest
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.workspace import Workspace
from nvflare.app_common.default_component_policy import DEFAULT_CLASS_ALLOW_LIST
from nvflare.app_common.widgets.component_path_authorizer import ComponentPathAuthorizer
from nvflare.fuel.common.excepts import ComponentNotAuthorized
from nvflare.private.fed.utils.fed_utils import UnsafeComponentError, authorize_build_component
from nvflare.private.json_configer import JsonConfigurator

from cxr_study.jobs.components import ALLOWED, PATHS
from cxr_study.jobs.job import Job
from flare import context
from product import product

ROOT = Path(__file__).parents[3]
FOLDERS = (ROOT / "jobs").glob("*/meta.json")
REPLACE = {"path": "cxr_study.common.files.atomic_write", "args": {"path": "a", "content": "b"}}
SHELL_CODE = {"BASH_FUNC_dirname%%": "() { touch /tmp/owned; }"}
SHELL = {"path": "cxr_deployment.processes.start", "args": {"kit": "/", "environment": SHELL_CODE}}


@pytest.fixture
def workspace(tmp_path):
    """That of a server or site with the allow-list."""
    for name in ("startup", "local"):
        (tmp_path / name).mkdir()
    (tmp_path / "local/resources.json").write_text(json.dumps({"class_allow_list": ALLOWED}))
    return Workspace(str(tmp_path), "nih")


@pytest.fixture
def build(workspace, tmp_path):
    """FLARE's builder of a job's components there."""
    fl_ctx = context()
    fl_ctx.set_prop(FLContextKey.WORKSPACE_OBJECT, workspace, private=True)
    fl_ctx.set_prop(FLContextKey.CURRENT_JOB_ID, "job", private=True)
    fl_ctx.set_prop(FLContextKey.JOB_META, {"byoc": False}, private=True)
    (tmp_path / "config.json").write_text("{}")
    configurator = JsonConfigurator([str(tmp_path / "config.json")], ["nvflare"], ["apis"])
    known = {"fl_ctx": fl_ctx, "event_handlers": []}
    configurator.set_component_build_authorizer(authorize_build_component, **known)
    return configurator.build_component


def everything():
    """Paths of all that a module of any package names, its imports too."""
    for path, module in product(ROOT).items():
        file = ROOT / path
        for name in symtable.symtable(file.read_text(), file.name, "exec").get_identifiers():
            yield f"{module}.{name}"


def test_it_is_components_alone_each_of_them_one_that_flare_allows_or_ours():
    for path in ALLOWED:
        found = pydoc.locate(path)
        assert inspect.isclass(found) and issubclass(found, FLComponent), path
        assert not inspect.isabstract(found) and f"{found.__module__}.{found.__name__}" == path
        assert path in DEFAULT_CLASS_ALLOW_LIST or not path.startswith("nvflare."), path
    assert len(PATHS) == len(ALLOWED)


def test_the_jobs_name_these_alone_and_ours_are_all_named():
    named = set().union(*(Job.of(path.parent).folder.classes for path in FOLDERS))
    ours = {path for path in ALLOWED if not path.startswith("nvflare.")}
    assert ours <= named <= {*ALLOWED}


def test_nothing_else_of_any_package_is_allowed(workspace):
    authorizer, names = ComponentPathAuthorizer(), {*everything()} - {*ALLOWED}
    assert {REPLACE["path"], SHELL["path"]} < names
    for path in names:
        with pytest.raises(UnsafeComponentError, match=f"'{path}' .* is not in allow_list"):
            authorizer.authorize_component_config({"path": path}, workspace=workspace)


@pytest.mark.parametrize("config", [
    REPLACE, SHELL, {"class_path": REPLACE["path"], "args": REPLACE["args"]},
    {"path": "nvflare.app_common.np.np_model_persistor.NPModelPersistor", "args": {}},
    {"path": "subprocess.Popen", "args": {"args": "touch /tmp/owned", "shell": True}},
])  # fmt: skip
def test_what_is_not_allowed_is_not_built_not_as_an_argument_either(build, config):
    for hostile in (config, {"path": PATHS["ChestXraySite"], "args": {"site": config}}):
        with pytest.raises(ComponentNotAuthorized, match="is not in allow_list"):
            build(hostile)
    assert build({"path": PATHS["ChestXraySite"], "args": {"site": "nih"}}).site == "nih"
