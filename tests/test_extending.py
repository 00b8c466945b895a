"""The parts of components/EXTENDING.md, made in and next to a copy of the product, and used."""

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

import surgical_aggregation
from cxr_study.data.readers import official_files, read
from cxr_study.jobs import job_folder
from surgical_aggregation.aggregation import strategy, weighting
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.aggregation.variable_kinds import VariableKinds
from surgical_aggregation.server.models.aggregator import SurgicalAggregator

assert Path(surgical_aggregation.__file__).is_relative_to(Path.cwd())

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
job_folder.check(Path("jobs/surgical"), sites=("a", "b"), settings=settings, per_site={})

Path("data").mkdir()
Path("data/openi.csv").write_text("file,patient,view,findings\\na.png,1,PA,Edema;Mass\\nb.png,2,AP,\\n")
labels, _, _ = official_files("openi", Path("data"))
table = read("openi", [labels])
assert table["Edema"].tolist() == [1.0, 0.0] and table["patient"].tolist() == ["1", "2"]
"""


def install(folder):
    """What pip makes of the page's package: a distribution with entry points."""
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    groups = re.findall(r'entry-points\."(.*?)"\]\n(.*?)(?=\n\n|$)', text, re.DOTALL)
    assert len(groups) == 2
    info = folder / "components/my_parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-parts\nVersion: 1.0\n")
    points = "\n".join(f"[{group}]\n{points.replace(chr(34), '')}\n" for group, points in groups)
    (info / "entry_points.txt").write_text(points)


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
    modules = dict(re.findall(r"```python\n# (\S+)\n(.*?)```", PAGE, re.DOTALL))
    for path, module in modules.items():
        (copy / path).write_text(module, encoding="utf-8")
    assert "my_parts.py" in modules
    install(copy)
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=copy, capture_output=True, text=True,
        env={"PYTHONPATH": f"{copy}/components:{copy}/custom:{copy}", "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
