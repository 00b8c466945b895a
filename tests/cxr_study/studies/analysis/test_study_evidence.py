import numpy as np
import pytest

import study_runs
from cxr_study.jobs.methods import Row
from cxr_study.studies.analysis.study_evidence import StudyEvidence
from cxr_study.studies.papers.claim import EVERY_SITE, NEARER, Comparison
from study_scores import LACKS, results

OURS, THEIRS = Row("surgical", "fedbn+"), Row("vanilla", "fedbn+")
LOCAL = Row("personalised", "fedbn")
SITES = {"nih": ["Edema", "Mass"], "chexpert": ["Edema", "Fracture"]}
AHEAD = Comparison(OURS, THEIRS, "nih")


def run(row, scenario="2", seed=0, sites=SITES):
    return study_runs.run(row.method, row.strategy, seed, scenario, sites)


def of(reached, planned=(), **other):
    """Evidence of {(row, scenario, seed): AUROC of a global model on NIH}."""
    finished = {run(*key): {("global", "nih"): {"Edema": value}} for key, value in reached.items()}
    return StudyEvidence(results(finished, [run(*key) for key in planned], **other))


def names(scenarios):
    return [scenario.name for scenario in scenarios]


class TestScenarios:
    def test_they_are_those_that_were_to_be_run_with_all_rows_in_the_studys_order(self):
        evidence = of(
            {(OURS, "10", 0): 0.7, (OURS, "2", 0): 0.8, (OURS, "4", 0): 0.7, (THEIRS, "2", 0): 0.7},
            planned=[(THEIRS, "10", 0)],
        )
        assert names(evidence.scenarios(AHEAD)) == ["2", "10"]
        assert evidence.scenarios(Comparison(OURS, THEIRS, "nih", NEARER)) == []

    def test_a_comparison_may_be_about_some_of_them(self):
        evidence = of({(row, name, 0): 0.7 for row in (OURS, THEIRS) for name in ("2", "4", "10")})
        which = Comparison(OURS, THEIRS, "nih", scenarios=("4", "8"))
        assert names(evidence.scenarios(which)) == ["4"]

    def test_without_the_test_set_there_are_none(self):
        evidence = of({(OURS, "2", 0): 0.8, (THEIRS, "2", 0): 0.7})
        assert evidence.scenarios(Comparison(OURS, THEIRS, "mimic")) == []


class TestNumbers:
    def numbers(self, evidence, which=AHEAD):
        return evidence.numbers(which, evidence.scenarios(which))

    def test_there_is_one_for_each_seed(self):
        ours = {(OURS, name, seed): 0.8 for name in ("2", "4") for seed in (1, 0)}
        theirs = {(THEIRS, name, seed): 0.7 - 0.1 * seed for name in ("2", "4") for seed in (0, 1)}
        found = self.numbers(of(ours | theirs))
        assert found == {0: pytest.approx(0.1), 1: pytest.approx(0.2)}

    def test_a_seed_without_one_of_the_scenarios_has_none(self):
        ours = {(OURS, name, seed): 0.8 for name in ("2", "4") for seed in (0, 1, 2)}
        theirs = {(THEIRS, name, 0): 0.7 for name in ("2", "4")}
        evidence = of(
            ours
            | theirs
            | {(THEIRS, "2", 1): 0.7, (THEIRS, "4", 1): np.nan, (THEIRS, "2", 2): 0.7},
            planned=[(THEIRS, "4", 2)],
        )
        assert list(self.numbers(evidence)) == [0]


class TestModels:
    @pytest.fixture
    def evidence(self):
        """Sites' own models: NIH's 0.9 on NIH and 0.7 elsewhere, CheXpert's 0.6 and 0.5 there."""
        nih = {"Edema": 0.9, "Mass": 0.9, "Fracture": LACKS}
        elsewhere = {"Edema": 0.7, "Mass": 0.7, "Fracture": LACKS}
        chexpert = {"Edema": 0.6, "Mass": LACKS, "Fracture": 0.6}
        mimic = {"Edema": 0.5, "Mass": LACKS, "Fracture": 0.5}
        own = {
            ("nih", "nih"): {name: nih[name] for name in ("Edema", "Mass")},
            ("nih", "mimic"): elsewhere,
            ("chexpert", "nih"): {name: chexpert[name] for name in ("Edema", "Mass")},
            ("chexpert", "mimic"): mimic,
        }
        ours = {("global", "nih"): dict.fromkeys(("Edema", "Mass"), 1.0)}
        ours["global", "mimic"] = dict.fromkeys(nih, 1.0)
        reached = {run(OURS, "20"): ours, run(LOCAL, "20"): own}
        return StudyEvidence(results(reached, study="nih-chexpert"))

    @pytest.mark.parametrize(
        ("test", "group", "model", "wanted"),
        [
            ("nih", "all", None, 0.9),  # the tested site's own
            ("nih", "shared", None, 0.9),  # the other one does not count
            ("mimic", "shared", None, (0.7 + 0.5) / 2),  # of both sites
            ("mimic", "nih", None, 0.7),  # of the one that has the classes
            ("mimic", "shared", "chexpert", 0.5),  # of the one that is meant
            ("nih", "shared", "chexpert", 0.6),
        ],
    )
    def test_which_of_a_rows_models_is_meant(self, evidence, test, group, model, wanted):
        which = Comparison(OURS, LOCAL, test, group=group, model=model)
        numbers = evidence.numbers(which, evidence.scenarios(which))
        assert numbers == {0: pytest.approx(1 - wanted)}

    def test_of_every_site_it_is_the_mean_over_the_test_sets_that_have_such_classes(self, evidence):
        for group, wanted in (("shared", (0.9 + (0.7 + 0.5) / 2) / 2), ("elsewhere", None)):
            which = Comparison(OURS, LOCAL, EVERY_SITE, group=group)
            numbers = evidence.numbers(which, evidence.scenarios(which))
            assert numbers == ({} if wanted is None else {0: pytest.approx(1 - wanted)})

    @pytest.mark.parametrize("model", [None, "nowhere"])
    def test_what_no_model_defines_is_no_number(self, evidence, model):
        which = Comparison(OURS, LOCAL, "mimic", model=model)
        assert evidence.numbers(which, evidence.scenarios(which)) == {}


class TestSame:
    def same(self, digests, seeds=(0, 1)):
        """Whether the models are the same, of {(row, seed): digest}."""
        evidence = of(
            {(row, "2", seed): 0.7 for row, seed in digests},
            digests=lambda run: {"global": digests[run.row, run.seed]},
        )
        return evidence.same(AHEAD, evidence.scenarios(AHEAD), seeds)

    def test_models_are_the_same_where_every_seed_has_the_same_digests(self):
        digests = {(OURS, 0): "a", (OURS, 1): "b", (THEIRS, 0): "a", (THEIRS, 1): "b"}
        assert self.same(digests)
        assert not self.same(digests | {(THEIRS, 1): "a"})

    def test_only_the_seeds_that_are_asked_for_count(self):
        digests = {(OURS, 0): "a", (OURS, 1): "b", (THEIRS, 0): "a", (THEIRS, 1): "x"}
        assert self.same(digests, seeds=[0])
