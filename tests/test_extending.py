"""What components/EXTENDING.md shows: a package of parts, and changes in a copy of the product."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "components/EXTENDING.md").read_text(encoding="utf-8")

USE = """
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import surgical_aggregation
from cxr_study.jobs.job import Job
from surgical_aggregation.aggregation import strategy, weighting
from surgical_aggregation.aggregation.variable_kinds import VariableKinds

assert Path(surgical_aggregation.__file__).is_relative_to(Path.cwd())

contribution = SimpleNamespace(columns={"Edema": None}, samples=16)
assert weighting.head_weights("root", contribution) == {"Edema": 4.0}
assert weighting.head_weights("samples", contribution) == {"Edema": 16}

kinds = VariableKinds(frozenset({"bn/gamma", "bn/moving_mean"}), frozenset({"scale"}))
assert strategy.kept_at_site("silobn", kinds) == {"bn/moving_mean", "scale"}
assert strategy.personal("silobn", kinds) == {"bn/moving_mean"}
assert strategy.has_personal("silobn") and not strategy.has_personal("fedbn+")

settings = {"head_weighting": "root", "strategy": "silobn"}
Job.asked("jobs/surgical", settings=settings)
"""

PARTS = """
from pathlib import Path

import numpy as np
from cxr_study.cli.main import command
from cxr_study.data.sites.site_data import load_labels
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.jobs.job import Job
from cxr_study.training.chest_xray_site import ChestXraySite

assert command() == 0
site = Path("sites/indiana.yaml")
labels = load_labels(read_site_file(site))
assert labels.table["Edema"].sum() == 20 and labels.table["patient"].nunique() == 40
site.write_text(site.read_text().replace("dataset: openi", "dataset: radiology_parts:OPENI"))
assert load_labels(read_site_file(site)).table.equals(labels.table)

Job.asked("surgical", settings={"backbone": "plain"})
model = ChestXraySite("indiana", "sites", backbone="plain", image_size=32).model()
assert model.get_layer("head").units == len(labels.table.columns) - 7
assert model(np.zeros((1, 32, 32, 3))).shape == (1, 2)
"""


@pytest.fixture
def parts(tmp_path):
    """Where the page's package is, as it is when installed."""
    ((path, module),) = re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / path).parent.mkdir()
    (tmp_path / path).write_text(module, encoding="utf-8")
    info = tmp_path / "radiology_parts-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: radiology-parts\nVersion: 1\n")
    (toml,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    points = re.sub(r'\[project\.entry-points\."(.*)"\]', r"[\1]", toml).replace('"', "")
    (info / "entry_points.txt").write_text(points)
    return tmp_path


def test_a_package_offers_a_reader_and_a_network(parts):
    (parts / "data/images").mkdir(parents=True)
    rows = [f"{n}.png,{n},PA,{'Edema;Mass' if n % 2 else ''}\n" for n in range(40)]
    (parts / "data/openi.csv").write_text("file,patient,view,findings\n" + "".join(rows))
    for number in range(40):
        (parts / f"data/images/{number}.png").touch()
    done = subprocess.run(
        [sys.executable, "-c", PARTS, "data", "site", "openi", "data", "sites/indiana.yaml"],
        cwd=parts, capture_output=True, text=True,
        env={"PYTHONPATH": f"{parts}:{ROOT}/components:{ROOT}/custom", "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def changes():
    """Path -> (text before, text after) of each hunk of the page's diffs."""
    found = {}
    for block in re.findall(r"```diff\n--- (\S+)\n(.*?)```", PAGE, re.DOTALL):
        path, body = block
        for hunk in body.split("@@\n"):
            lines = [(line[:1], line[1:]) for line in hunk.splitlines()]
            before = "\n".join(text for mark, text in lines if mark != "+")
            after = "\n".join(text for mark, text in lines if mark != "-")
            found.setdefault(path, []).append((before, after))
    return found


@pytest.fixture
def copy(tmp_path):
    for folder in ("components/surgical_aggregation", "custom/cxr_study", "jobs"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    return tmp_path


def test_they_are_complete(copy):
    for path, hunks in changes().items():
        text = (copy / path).read_text(encoding="utf-8")
        end = 0
        for before, after in hunks:
            place = text.index(before, end)
            text = text[:place] + after + text[place + len(before) :]
            end = place + len(after)
        (copy / path).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=copy, capture_output=True, text=True,
        env={"PYTHONPATH": f"{copy}/components:{copy}/custom", "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
