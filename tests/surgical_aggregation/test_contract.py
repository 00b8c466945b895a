"""What every FLARE component of the project keeps to, whatever it does."""

import importlib
import inspect
import pkgutil
import subprocess
import sys
from importlib.util import find_spec
from itertools import chain

import pytest
from nvflare.apis.fl_component import FLComponent

import cxr_audit
import cxr_study
import surgical_aggregation
from surgical_aggregation.checkpoints import checkpoint, manifest
from surgical_aggregation.site.contract.site import Site

# Arguments without a default.
REQUIRED = {"site": "north", "members": (), "withheld": {}, "packages": ()}


def modules(package):
    names = [name for _, name, _ in pkgutil.walk_packages(package.__path__, package.__name__ + ".")]
    if find_spec("tenseal") is None:  # an extra
        names = [name for name in names if ".encryption." not in name]
    return [importlib.import_module(name) for name in names]


def components():
    packages = (surgical_aggregation, cxr_study, cxr_audit)
    found = {
        cls
        for module in chain.from_iterable(map(modules, packages))
        for _, cls in inspect.getmembers(module, inspect.isclass)
        if issubclass(cls, FLComponent) and cls.__module__ == module.__name__
    }
    concrete = (cls for cls in found if not inspect.isabstract(cls))
    return sorted(concrete, key=lambda cls: cls.__name__)


@pytest.mark.parametrize("cls", components(), ids=lambda cls: cls.__name__)
def test_a_component_says_where_it_runs_and_keeps_every_argument_under_its_name(cls):
    """FLARE's job export reads the arguments back from the attributes."""
    parameters = inspect.signature(cls).parameters.values()
    required = {p.name: REQUIRED[p.name] for p in parameters if p.default is p.empty}
    component, text = cls(**required), inspect.getdoc(cls)
    for parameter in parameters:
        given = required.get(parameter.name, parameter.default)
        assert getattr(component, parameter.name) == given
        assert f"{parameter.name}:" in text
    text += inspect.getdoc(inspect.getmodule(cls))
    text += inspect.getdoc(Site) if issubclass(cls, Site) else ""
    assert ("Runs on the server" in text) != ("Runs on the client" in text)


SERVER = modules(surgical_aggregation.server)
PURE = [*modules(surgical_aggregation.aggregation), checkpoint, manifest]


@pytest.mark.parametrize(("parts", "absent"), [
    (PURE, {"nvflare", "keras", "tensorflow"}), (SERVER, {"keras", "tensorflow"}),
], ids=["pure", "server"])  # fmt: skip
def test_what_a_part_does_not_need_it_does_not_import(parts, absent):
    names = [module.__name__ for module in parts]
    code = f"for name in {names}: importlib.import_module(name)\n"
    code = f"import sys, importlib\n{code}sys.exit(bool({absent} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
