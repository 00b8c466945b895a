import pandas as pd
import pytest

import study_runs
from cxr_study.jobs.methods import Row
from cxr_study.studies.analysis.reference import as_tables, counts_on, reference


def runs(*rows):
    return [study_runs.run(method, strategy) for method, strategy in rows]


class TestReference:
    def test_it_is_surgical_aggregation_with_fedbn_plus_wherever_that_stands(self):
        planned = runs(("vanilla", "fedbn+"), ("surgical", "fedavg"), ("surgical", "fedbn+"))
        assert reference(planned) == Row("surgical", "fedbn+")

    def test_without_fedbn_plus_it_is_the_first_strategy(self):
        assert reference(runs(("surgical", "fedbn"), ("surgical", "fedavg"))).strategy == "fedbn"

    def test_without_surgical_aggregation_there_is_none(self):
        assert reference(runs(("vanilla", "fedbn+"))) is None


class TestWhichModelCounts:
    @pytest.mark.parametrize(
        ("models", "test", "wanted"),
        [
            (["global"], "nih", "global"),
            (["nih", "chexpert"], "nih", "nih"),
            (["nih", "chexpert"], "mimic", None),
            (["nih-1", "nih-2"], "nih", None),
        ],
    )
    def test_the_global_one_or_that_of_the_site_that_is_tested(self, models, test, wanted):
        assert counts_on(models, test) == wanted


class TestAsTables:
    @pytest.mark.parametrize(
        ("method", "models", "test", "wanted"),
        [
            ("surgical", ["global"], "nih", {"global": "global"}),
            ("personalised", ["nih", "chexpert"], "nih", {"nih": "local"}),
            ("personalised", ["nih", "chexpert"], "mimic", {"nih": "local", "chexpert": "local"}),
            ("individual", ["nih", "chexpert"], "nih", {"nih": "nih", "chexpert": "chexpert"}),
            ("individual", ["nih", "chexpert"], "mimic", {"nih": "nih", "chexpert": "chexpert"}),
            ("individual", ["nih-1", "nih-2"], "nih", {"nih-1": "local", "nih-2": "local"}),
        ],
    )
    def test_models_are_named_as_there_and_those_that_are_not_there_left_out(
        self, method, models, test, wanted
    ):
        run = {"scenario": "2", "method": method, "strategy": "fedbn+", "seed": 0, "test": test}
        lines = pd.DataFrame({**run, "model": models, "was": models})
        found = as_tables(lines)
        assert dict(zip(found["was"], found["model"], strict=True)) == wanted

    def test_every_run_and_test_set_has_its_own_models(self):
        run = {"scenario": "2", "method": "personalised", "strategy": "fedbn+", "model": "nih"}
        lines = pd.DataFrame({**run, "seed": [0, 0, 1], "test": ["nih", "mimic", "nih"]})
        assert len(as_tables(lines)) == 3
