from pathlib import Path

import pytest

from cxr_studies.plan import method_job
from cxr_studies.plan.row import Row
from cxr_study.jobs.job import Job
from cxr_study.runs.finished_run import checkpoint_folder

SITES = ("nih", "chexpert")
UNION = ("Edema", "Fracture", "Mass")


def job_of(row, settings=None, sites=SITES, preset=None):
    return method_job.job_of(row, sites=sites, union=UNION, settings=settings or {}, preset=preset)


@pytest.mark.parametrize("method", ("surgical", "personalised", "vanilla", "partial_loss"))
def test_it_is_the_methods_job_with_the_rows_strategy_for_all_sites(method):
    job, own = job_of(Row(method, "fedavg"), sites=("a", "b", "c")), Job.of(method)
    changed = {"strategy": "fedavg", "threads": 1, "min_clients": 3}
    if "union" in own.settings:
        changed["union"] = "Edema,Fracture,Mass"
    assert job.settings == own.settings | changed
    assert job.sites == ("a", "b", "c")


@pytest.mark.parametrize("strategy", ["fedbn+", "fedbn+ samples"])
def test_what_is_set_wins_over_the_preset_and_all_but_the_rows_strategy(strategy):
    given = {"threads": 3, "batch_size": 8, "seed": 7, "head_weighting": "samples"}
    row = Row("surgical", strategy)
    job = job_of(row, given | {"strategy": "fedavg"}, preset="paper-fedfbn")
    own = {**given, "strategy": "fedbn+", "learning_rate": 1e-5}
    assert job.settings == {**job.settings, **own}
    assert job.at("chexpert").learning_rate == 5e-5


@pytest.mark.parametrize(("method", "strategy", "personal"), [
    ("surgical", "fedavg", False),
    ("vanilla", "fedbn+", False),
    ("personalised", "fedbn+", True),
    ("surgical", "fedbn", True),
    ("vanilla", "fedbn", True),
])  # fmt: skip
def test_models_are_one_for_all_or_one_for_each_site_with_variables_of_its_own(
    method, strategy, personal
):
    row, workspace = Row(method, strategy), Path("/w")
    assert method_job.is_personal(row) == personal
    for best, name in ((True, "best.npz"), (False, "last.npz")):
        assert method_job.models(row, workspace, SITES, best=best) == {
            site: checkpoint_folder(workspace, site) / f"site_{name}"
            if personal
            else checkpoint_folder(workspace) / name
            for site in SITES
        }
