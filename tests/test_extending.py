"""The packages of parts that components/EXTENDING.md shows, installed and used."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "components/EXTENDING.md").read_text(encoding="utf-8")

USE = """
from pathlib import Path

from cxr_study.jobs import job_folder
from surgical_aggregation.aggregation import strategy, weighting
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.aggregation.variable_kinds import VariableKinds
from surgical_aggregation.server.models.aggregator import SurgicalAggregator

result = SiteResult({}, {"Edema": None}, samples=16)
root = weighting.find("head_weighting", "root", weighting.HEAD_WEIGHTINGS)
assert weighting.column_weights(root, "north", result) == {"Edema": 4.0}
assert SurgicalAggregator(head_weighting="root", strategy="silobn").strategy == "silobn"

paths = ["bn/gamma", "bn/moving_mean", "scale", "dense4_conv/kernel"]
kinds = VariableKinds(frozenset({"bn/gamma", "bn/moving_mean"}), frozenset({"scale"}))
assert strategy.kept_at_site("silobn", paths, kinds) == {"bn/moving_mean", "scale"}
assert strategy.kept_at_site("last_block", paths, kinds) == {"dense4_conv/kernel", "scale"}
assert strategy.has_personal("silobn") and not strategy.has_personal("fedbn+")
for unknown in ("os:system", "my_parts:SiloBN", "my_parts.SiloBN"):
    try:
        strategy.find(unknown)
    except ValueError as error:
        assert "('fedavg', 'fedbn', 'fedbn+', 'last_block', 'silobn'); got" in str(error)
    else:
        raise AssertionError(unknown)

settings = {"head_weighting": "root", "strategy": "silobn"}
job_folder.check(JOB, sites=("a", "b"), settings=settings, per_site={})
"""

PARTS = """
from pathlib import Path

import numpy as np
from cxr_study.cli.main import command
from cxr_study.data.sites.site_data import load_labels
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.jobs import job_folder
from cxr_study.training.chest_xray_site import ChestXraySite

assert command() == 0
site = Path("sites/indiana.yaml")
labels = load_labels(read_site_file(site))
assert labels.table["Edema"].sum() == 20 and labels.table["patient"].nunique() == 40
site.write_text(site.read_text().replace("dataset: openi", "dataset: radiology_parts:OPENI"))
assert load_labels(read_site_file(site)).table.equals(labels.table)

job_folder.check(JOB, sites=("a", "b"), settings={"backbone": "plain"}, per_site={})
model = ChestXraySite("indiana", "sites", backbone="plain", image_size=32).model()
assert model.get_layer("head").units == len(labels.table.columns) - 7
assert model(np.zeros((1, 32, 32, 3))).shape == (1, 2)
"""


@pytest.fixture
def parts(tmp_path):
    """Where the page's packages are, as they are when installed."""
    modules = re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, re.DOTALL)
    tables = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    for (path, module), table in zip(modules, tables, strict=True):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(module, encoding="utf-8")
        name = path.partition("/")[0].removesuffix(".py")
        info = tmp_path / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        points = re.sub(r'\[project\.entry-points\."(.*)"\]', r"[\1]", table).replace('"', "")
        (info / "entry_points.txt").write_text(points)
    return tmp_path


def used(code, folder, *words):
    """Run code with the packages installed in a folder."""
    done = subprocess.run(
        [sys.executable, "-c", code.replace("JOB", f"Path({str(ROOT / 'jobs/surgical')!r})"),
         *words], cwd=folder, capture_output=True, text=True,
        env={"PYTHONPATH": f"{folder}:{ROOT}/components:{ROOT}/custom", "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_package_offers_a_weighting_and_strategies(parts):
    used(USE, parts)


def test_a_package_offers_a_reader_and_a_network(parts):
    (parts / "data/images").mkdir(parents=True)
    rows = [f"{n}.png,{n},PA,{'Edema;Mass' if n % 2 else ''}\n" for n in range(40)]
    (parts / "data/openi.csv").write_text("file,patient,view,findings\n" + "".join(rows))
    for number in range(40):
        (parts / f"data/images/{number}.png").touch()
    used(PARTS, parts, "data", "site", "openi", "data", "sites/indiana.yaml")
