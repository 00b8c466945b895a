"""The package that docs/tutorials/extend.md shows, used as one that is installed."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from cxr_studies.plan import plan, run_settings
from cxr_studies.plan.data_file import read_data
from cxr_studies.plan.study_file import Selection, read_study
from cxr_studies.report.figures.aurocs import auroc_by_scenario
from cxr_study.common.errors import InputError
from cxr_study.jobs.job import Job
from cxr_study.jobs.presets import JobError
from study_runs import MadeUp

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/tutorials/extend.md").read_text(encoding="utf-8")

PARTS = """
import re
from pathlib import Path

import numpy as np
import pytest

from cxr_phantom.demo_data import PRETRAINED_BODY
from cxr_studies.plan.study_file import read_study
from cxr_studies.report.figures.style import marker_style
from cxr_study.cli.main import command
from cxr_study.data.sites.site_data import load_labels
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.jobs.job import Job
from cxr_study.jobs.methods import METHODS
from cxr_study.jobs.presets import JobError
from cxr_study.jobs.recipe import JobRecipe
from cxr_study.runs.run_request import RunRequest, check
from cxr_study.training.chest_xray_site import ChestXraySite
from surgical_aggregation.aggregation import batch_norm_strategy as strategies
from surgical_aggregation.aggregation import weighting
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.aggregation.batch_norm_strategy import VariableKinds
from surgical_aggregation.checkpoints.checkpoint import load
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
tails = Job.asked("tails", sites=["indiana", "ohio"])
assert tails.settings == Job.of("surgical").settings | {"strategy": "tail"}
JobRecipe(tails)
with pytest.raises(JobError, match="needs one of the jobs surgical, vanilla, partial_loss, by"):
    check(RunRequest(tails, Path("run"), Path("sites"), published=True))
assert "evaluation" not in METHODS
(row,) = read_study("own.yaml").rows
assert row.federated and row.title == "Surgical aggregation with local tails"
assert marker_style(row)["marker"] == "h"
found = weighting.find("head_weighting", "root", weighting.HEAD_WEIGHTINGS)
result = SiteResult({}, {"Edema": None}, samples=16)
assert found("a", result, "Edema") == 4.0
assert SurgicalAggregator(head_weighting="root", strategy="silobn").strategy == "silobn"
paths = ["bn/gamma", "bn/moving_mean", "scale", "conv/kernel"]
kinds = VariableKinds(frozenset({"bn/gamma", "bn/moving_mean"}), frozenset({"scale"}))
assert strategies.kept_at_site("silobn", paths, kinds) == {"bn/moving_mean", "scale"}
body = load(PRETRAINED_BODY)
kinds = strategies.kinds_of(body.manifest, body.variables)
strategies.check_body("tail", body.variables, kinds)
assert 5 < len(strategies.kept_at_site("tail", body.variables, kinds)) < len(body.variables) / 2
assert strategies.has_personal("silobn") and not strategies.has_personal("fedbn+")
known = re.escape("('fedavg', 'fedbn', 'fedbn+', 'fixbn', 'silobn', 'tail'); got")
for unknown in ("os:system", "radiology_parts.method:SiloBN", "radiology_parts.method.SiloBN"):
    with pytest.raises(ValueError, match=known):
        strategies.find(unknown)
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


STUDY = {
    "title": "Own strategies", "source": "ours", "factor": "sites", "quick": ["2"], "seeds": 1,
    "scenarios": [{"name": name, "cut": "nih", "sites": int(name)} for name in "24"],
    "methods": {"surgical": ["fedbn+", "silobn", "tail"], "individual": ["fedavg"]},
    "tests": ["nih"],
}  # fmt: skip


def write_study(folder, **keys):
    path = folder / "own.yaml"
    path.write_text(yaml.safe_dump({**STUDY, **keys}))
    return path


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
    groups = re.findall(r'^"(\S+)" = { (.*) }$', toml, re.MULTILINE)
    points = "".join(f"[{group}]\n{found.replace(', ', chr(10))}\n" for group, found in groups)
    points = points.replace("tails =", "evaluation = radiology_parts.jobs:NOT_ONE\ntails =")
    with (tmp_path / "radiology_parts/jobs.py").open("a") as module:
        module.write('NOT_ONE = Method("evaluation", "", "")\n')
    (info / "entry_points.txt").write_text(points.replace('"', ""))
    return tmp_path


@pytest.fixture
def installed(parts, monkeypatch):
    """The same, for this process."""
    monkeypatch.syspath_prepend(parts)
    return parts


def test_a_package_offers_a_reader_a_network_a_strategy_a_weighting_and_a_method(parts):
    write_study(parts, methods={"tails": ["tail"]})
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


def test_a_study_has_the_strategies_of_a_package(installed):
    study = read_study(write_study(installed))
    assert plan.check(study, read_data("phantom"), Selection()) == ("nih",)
    for row in study.rows:
        settings = run_settings.all_settings(row, ["a", "b"], ["Edema"], None, {})
        assert settings["strategy"] == row.strategy
    made_up = MadeUp(installed, {"nih-1": ["Edema", "Mass"], "nih-2": ["Edema", "Hernia"]})
    for row in study.rows:
        for scenario in ("2", "4"):
            made_up.reach(0.7, method=row.method, strategy=row.strategy, scenario=scenario)
    drawn = auroc_by_scenario(made_up.gathered(study), "f")
    assert "own strategy (silobn)" in drawn and "own strategy (tail)" in drawn


def test_a_study_without_a_federation_has_only_strategies_of_this_software(installed):
    wrong = write_study(installed, methods={"individual": ["silobn"]})
    with pytest.raises(InputError, match=r"'individual' needs known strategies .* got 'silobn'"):
        read_study(wrong)


@pytest.mark.parametrize("wish", [{"refit_model": "best"}, {"average_decay": 0.8}])
def test_a_strategy_with_personal_variables_has_no_model_to_refit_or_average(installed, wish):
    with pytest.raises(JobError, match=r"needs one model for all sites; strategy 'silobn' gives"):
        Job.asked("surgical", settings={"strategy": "silobn", **wish})
    own = {"methods": {"surgical": ["silobn own"]}, "variants": {"own": wish}}
    study = read_study(write_study(installed, **own))
    with pytest.raises(InputError, match=r"variant 'own' of method 'surgical': .* one model for"):
        plan.check(study, read_data("phantom"), Selection())
