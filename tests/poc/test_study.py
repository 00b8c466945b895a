"""A study whose federated runs are made in a POC: the simulator's, bit for bit."""

import psutil
import pytest
import yaml
from rich.console import Console

import deployed
import study_data
from cxr_study.deployment import services
from cxr_study.studies.data_file import read_data
from cxr_study.studies.machine import Machine
from cxr_study.studies.make import make
from cxr_study.studies.run_folder import RUNS, read_result
from cxr_study.studies.selection import Selection, StudyError
from cxr_study.studies.study_file import read_study

pytestmark = [pytest.mark.poc, pytest.mark.keras]

STUDY = {
    "title": "Two sites",
    "source": "none",
    "factor": "classes",
    "settings": [{"name": "20", "sites": ["nih", "chexpert"]}],
    "quick": ["20"],
    "methods": {"surgical": ["fedbn+"], "personalised": ["fedbn"]},
    "seeds": 1,
    "tests": ["nih"],
}
MACHINE = Machine(4, 16e9)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Method -> results in a POC and in the simulator; and the folder."""
    home = tmp_path_factory.mktemp("study")
    data = read_data(study_data.write(home))
    (home / "two.yaml").write_text(yaml.safe_dump(STUDY))
    study = read_study(home / "two.yaml")
    found = {}
    for project in (deployed.PROJECT, None):
        done = make(
            [study], data, home / "out", Selection(),
            machine=MACHINE, console=Console(quiet=True), project=project,
        )  # fmt: skip
        assert not done.failures
        for run in done.runs[study.name]:
            result = read_result(home / "out" / RUNS / run.key)
            found.setdefault(run.row.method, []).append((run.key, result))
    return found, home


@pytest.mark.parametrize("method", STUDY["methods"])
def test_the_models_and_all_that_is_kept_are_the_simulators_bit_for_bit(made, method):
    (poc_key, poc), (key, simulated) = made[0][method]
    assert poc_key != key  # both were made
    for name in ("digests", "losses", "rounds", "best_round", "column_similarity", "tests"):
        assert getattr(poc, name) == getattr(simulated, name), name


def test_nothing_is_left_behind(made):
    _, home = made
    assert not services.processes(home.resolve())
    assert not list(home.glob("out/runs/*/work"))
    children = psutil.Process().children(recursive=True)
    assert not [child for child in children if "nvflare" in " ".join(child.cmdline())]


def test_sites_that_the_project_does_not_have_are_refused(made, tmp_path):
    data = read_data(made[1] / "small.yaml")
    with pytest.raises(StudyError, match=r"has the sites .*; setting '2' has others"):
        make(
            [read_study("clients")], data, tmp_path, Selection(),
            machine=MACHINE, console=Console(quiet=True), project=deployed.PROJECT,
        )  # fmt: skip
