"""The package that docs/tutorials/extend.md shows, used as one that is installed."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/tutorials/extend.md").read_text(encoding="utf-8")

PARTS = """
from pathlib import Path

import numpy as np

from cxr_study.cli.main import command
from cxr_study.data.sites.site_data import load_labels
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.jobs.job import Job
from cxr_study.jobs.recipe import JobRecipe
from cxr_study.training.chest_xray_site import ChestXraySite
from surgical_aggregation.aggregation import strategy, weighting
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.aggregation.strategy import VariableKinds
from surgical_aggregation.server.models.aggregator import SurgicalAggregator
from surgical_aggregation.site.contract.architecture import initial_body
from surgical_aggregation.site.training.trainer import LocalTraining
from surgical_aggregation.site.training.training_options import TrainingOptions

assert command() == 0
site = Path("sites/indiana.yaml")
labels = load_labels(read_site_file(site))
assert labels.table["Edema"].sum() == 20 and labels.table["patient"].nunique() == 40
site.write_text(site.read_text().replace("dataset: openi", "dataset: radiology_parts.xrays:OPENI"))
assert load_labels(read_site_file(site)).table.equals(labels.table)

settings = {"backbone": "plain", "strategy": "silobn", "head_weighting": "root"}
Job.asked("surgical", settings=settings)
found = weighting.find("head_weighting", "root", weighting.HEAD_WEIGHTINGS)
result = SiteResult({}, {"Edema": None}, samples=16)
assert found("a", result, "Edema") == 4.0
assert SurgicalAggregator(head_weighting="root", strategy="silobn").strategy == "silobn"
paths = ["bn/gamma", "bn/moving_mean", "scale", "dense4_conv/kernel"]
kinds = VariableKinds(frozenset({"bn/gamma", "bn/moving_mean"}), frozenset({"scale"}))
assert strategy.kept_at_site("silobn", paths, kinds) == {"bn/moving_mean", "scale"}
assert strategy.kept_at_site("last_block", paths, kinds) == {"dense4_conv/kernel", "scale"}
assert strategy.has_personal("silobn") and not strategy.has_personal("fedbn+")
for unknown in ("os:system", "radiology_parts.method:SiloBN", "radiology_parts.method.SiloBN"):
    try:
        strategy.find(unknown)
    except ValueError as error:
        assert "('fedavg', 'fedbn', 'fedbn+', 'fixbn', 'last_block', 'silobn'); got" in str(error)
    else:
        raise AssertionError(unknown)
model = ChestXraySite("indiana", "sites", backbone="plain", image_size=32).model()
assert model.get_layer("head").units == len(labels.table.columns) - 7
assert model(np.zeros((1, 32, 32, 3))).shape == (1, 2)

from radiology_parts.hospital import StripedSite

asked = Job.asked("surgical", sites=["indiana", "ohio"], settings={"strategy": "fedavg"})
JobRecipe(asked, site=StripedSite("{SITE_NAME}", "sites"))
hospital = StripedSite("indiana", "sites", image_size=32, batch_size=8)
start = initial_body(hospital.model(), **hospital.network_facts)
assert start.manifest["backbone"] == "stripes" and start.manifest["image_size"] == 32
assert start.variables.keys() == {"lines/kernel", "lines/bias"}
training = LocalTraining(hospital, TrainingOptions(strategy="fedavg"))
training.receive(start.variables, {})
training.train(0)
assert (training.variables()["lines/kernel"] != start.variables["lines/kernel"]).any()
"""


@pytest.fixture
def parts(tmp_path):
    """Where the page's package is, as it is when installed."""
    for path, module in re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, re.DOTALL):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(module, encoding="utf-8")
    info = tmp_path / "radiology_parts-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: radiology-parts\nVersion: 1\n")
    (toml,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    points = re.sub(r'\[project\.entry-points\."(.*)"\]', r"[\1]", toml).replace('"', "")
    (info / "entry_points.txt").write_text(points)
    return tmp_path


def test_a_package_offers_a_reader_a_network_a_strategy_and_a_weighting(parts):
    (parts / "data/images").mkdir(parents=True)
    rows = [f"{n}.png,{n},PA,{'Edema;Mass' if n % 2 else ''}\n" for n in range(40)]
    (parts / "data/openi.csv").write_text("file,patient,view,findings\n" + "".join(rows))
    rng = np.random.default_rng(0)
    for number in range(40):
        pixels = rng.integers(0, 256, (32, 32), np.uint8)
        Image.fromarray(pixels).save(parts / f"data/images/{number}.png")
    done = subprocess.run(
        [sys.executable, "-c", PARTS, "data", "site", "openi", "data", "sites/indiana.yaml"],
        cwd=parts, capture_output=True, text=True,
        env={"PYTHONPATH": f"{parts}:{ROOT}/components:{ROOT}/custom", "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
