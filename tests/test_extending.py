"""The changes of components/EXTENDING.md, made in a copy of the product and used there."""

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
from cxr_study.data.readers import official_files, read
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

Path("data").mkdir()
Path("data/openi.csv").write_text("file,patient,view,findings\\na.png,1,PA,Edema;Mass\\nb.png,2,AP,\\n")
labels, _, _ = official_files("openi", Path("data"))
table = read("openi", [labels])
assert table["Edema"].tolist() == [1.0, 0.0] and table["patient"].tolist() == ["1", "2"]
"""


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
    ((path, module),) = re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, re.DOTALL)
    (copy / path).write_text(module, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=copy, capture_output=True, text=True,
        env={"PYTHONPATH": f"{copy}/components:{copy}/custom", "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
