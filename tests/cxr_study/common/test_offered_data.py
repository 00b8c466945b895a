"""Demo data and initial bodies that installed packages offer."""

import subprocess
import sys
from pathlib import Path

import pytest

from cxr_study.common import offered_data
from cxr_study.data.sites.site_file import find_site_file
from surgical_aggregation import extras
from surgical_aggregation.extras import EntryPointError, PartError, offered_body
from surgical_aggregation.site.contract.site_policy import NO_POLICY, SitePolicy

ENTRY_POINTS = """
[surgagg.demo_data]
toy = toy_data:TOY
half = toy_data_that_is_gone:TOY
[surgical_aggregation.initial_bodies]
toy = toy_data:body
"""
MODULE = """
from pathlib import Path
from cxr_study.common.offered_data import DemoData

HERE = Path(__file__).parent
TOY = DemoData(("a",), lambda: HERE / "sites", lambda: None)

def body(name, *, simulated):
    return HERE / "toy.npz" if name == "toy-body" else None
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """Folder of an installed package that offers demo data of its own."""
    info = tmp_path / "toy_data-1.dist-info"
    for folder in (info, tmp_path / "sites"):
        folder.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-data\nVersion: 1\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "toy_data.py").write_text(MODULE)
    (tmp_path / "sites/a.yaml").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("toy_data", None)


def test_another_package_offers_data_and_a_body_by_their_names(toy):
    assert offered_data.is_demo_data("toy") and offered_data.demo_data("toy").sites == ("a",)
    assert offered_data.site_files(Path("toy")) == toy / "sites"
    for policy in (NO_POLICY, SitePolicy(site_files="toy")):
        assert find_site_file("a", "toy", policy, "a") == toy / "sites/a.yaml"
    assert offered_body("toy-body") == toy / "toy.npz"
    assert offered_body("drawings") == offered_data.drawings()
    assert offered_body("drawing") is None is offered_body("")


def test_without_its_package_a_name_says_what_to_install(toy, monkeypatch):
    with pytest.raises(EntryPointError, match=r"'half' .*package toy-data .*that_is_gone"):
        offered_data.demo_data("half")
    assert issubclass(EntryPointError, PartError)  # so that a record of one can be read without it
    monkeypatch.setattr(offered_data, "offered_body", lambda _: None)
    with pytest.raises(PartError, match=r"cxr_phantom.*surgical-aggregation\[cxr\]"):
        offered_data.drawings()


@pytest.mark.parametrize(("command", "code", "message"), [
    ("study list", 0, "'data.phantom' (cxr_phantom.commands.data_phantom:app), which the"),
    ("run surgical --phantom", 2, "'phantom' (cxr_phantom.demo_data:PHANTOM), which the package"),
    ("run surgical --site-files sites --initial-body drawings", 2, "'drawings' needs an installed"),
])  # fmt: skip
def test_without_the_phantom_a_command_that_needs_it_says_so(command, code, message):
    without = "import sys; sys.modules['cxr_phantom'] = None"
    program = f"{without}; from cxr_study.cli import start; start()"
    words = [sys.executable, "-c", program, *command.split()]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == code and message in done.stderr, done.stderr


def test_in_a_folder_that_is_not_installed_the_missing_module_stays_the_error(monkeypatch):
    monkeypatch.setattr(extras, "_PROJECT", "not-installed")
    assert extras.missing(ModuleNotFoundError("No module named 'PIL'", name="PIL")) is None
