import pandas as pd
import pytest

import study_runs
from cxr_study.rows import Row
from cxr_study.studies.reference import counted, counts_on, reference


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
        lines = pd.DataFrame({"model": models, "test": test})
        assert counted(lines)["model"].tolist() == ([wanted] if wanted else [])
