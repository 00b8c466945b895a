"""A study of methods on sites with splits of their own: real trainings, at two endings."""

import shutil
from types import SimpleNamespace

import pytest
import yaml
from rich.console import Console

import study_data
from cxr_studies.analysis.study_results import gather
from cxr_studies.plan.data_file import read_data
from cxr_studies.plan.study_file import Selection, read_study
from cxr_studies.report.study_report import write
from cxr_studies.runner.run_study import run_studies
from cxr_study.data.labels.vocabulary import NIH_CLASSES, UNION_CLASSES

EQUAL, EARLY = "equal rounds", "early stopping"
SITES = {"north": "nih", "south": "chexpert"}
"""Site -> the one of the phantom whose data it has."""

PLACE = ["scenario", "method", "model", "test", "group"]
STUDY = {
    "title": "Methods", "source": "none", "factor": "ending", "quick": [EQUAL], "seeds": 1,
    "scenarios": [
        {"name": EQUAL, "sites": "all", "model": "last", "settings": {"num_rounds": 1}},
        {"name": EARLY, "sites": "all", "settings": {"num_rounds": 2, "patience": 1}},
    ],
    "methods": {"personalised": ["fedavg"], "centralised": ["fedbn+"]},
}  # fmt: skip


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The study, made once: its results, its page, and what each run has left."""
    home = tmp_path_factory.mktemp("methods")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SURGAGG_CACHE", str(home / "cache"))
        recipe = yaml.safe_load(study_data.write(home, study_data.network).read_text())
        for site, copied in SITES.items():
            shutil.copy(home / f"phantom/sites/{copied}.yaml", home / f"phantom/sites/{site}.yaml")
        sites = [f"phantom/sites/{site}.yaml" for site in SITES]
        recipe = {"sites": sites, **{key: recipe[key] for key in ("initial_body", "settings")}}
        (home / "sites.yaml").write_text(yaml.safe_dump(recipe))
        (home / "methods.yaml").write_text(yaml.safe_dump(STUDY))
        data = read_data(home / "sites.yaml")
        study = read_study(home / "methods.yaml").with_sites_of(data)
        how = {"at_once": 2, "console": Console(quiet=True)}
        made = run_studies([study], data, home / "out", Selection(), **how)
        assert not made.failures
        results = gather(study, made.runs["methods"], home / "out")
        page = write(results, data, home / "out/methods", made.data_use)
    return SimpleNamespace(
        results=results,
        means=results.means.set_index(PLACE)["auroc"].sort_index(),
        kept={(run.scenario, run.row.method): results.results[run.key] for run in results.runs},
        page=page.read_text(),
    )


def test_every_site_is_measured_on_every_class_and_a_local_model_on_its_own(done):
    for _, found in done.results.scores.groupby(["scenario", "model", "test"]):
        assert sorted(found["class"]) == sorted(UNION_CLASSES)
    north = done.results.scores.query("test == 'north'")
    assert set(north.loc[north["labelled"], "class"]) == set(NIH_CLASSES)
    for ending in (EQUAL, EARLY):
        own = done.means[ending, "personalised", "north", "north"]
        assert own[["shared", "unique"]].notna().all() and own[["all", "elsewhere"]].isna().all()
        assert len(set(done.kept[ending, "personalised"].digests.values())) == 2
        for site in SITES:
            found = done.means[ending, "centralised", "global", site]
            assert found[["all", "shared", "unique", "elsewhere"]].between(0, 1).all()
    for text in ("unique, this site", "unique, other sites", "Methods: north", "Methods: south"):
        assert text in done.page


@pytest.mark.parametrize("method", ["personalised", "centralised"])
def test_the_last_model_after_some_rounds_and_the_best_of_more_are_tested(done, method):
    equal, early = done.kept[EQUAL, method], done.kept[EARLY, method]
    assert (equal.best_round, equal.rounds) == (1, 1)
    assert early.best_round in (1, 2) and early.rounds == 2
    assert equal.losses == pytest.approx(early.losses[:2])  # the same training until then
