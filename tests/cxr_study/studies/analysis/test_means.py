import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cxr_study.studies.analysis.means import GROUPS, by_run, over_seeds


def score(name, auroc, shared=False, predicted=True, seed=0, labelled=True, **other):
    facts = {
        "scenario": "2",
        "method": "surgical",
        "strategy": "fedbn+",
        "seed": seed,
        "model": "global",
        "test": "nih",
        "class": name,
        "shared": shared,
        "labelled": labelled,
        "predicted": predicted,
        "auroc": auroc,
        "auprc": 0.5,
        "bce": 0.3,
        "ece": 0.1,
    }
    return {**facts, **other}


def means(*scores):
    """Group -> its line."""
    return by_run(pd.DataFrame(list(scores))).set_index("group")


class TestByRun:
    def test_mean_and_sample_sd_over_the_classes_of_each_group(self):
        found = means(
            score("Edema", 0.9, shared=True),
            score("Mass", 0.8),
            score("Fracture", 0.6),
            score("Support devices", 0.5, labelled=False),
        )
        assert found["auroc"].to_dict() == {
            "all": pytest.approx(0.7),
            "shared": 0.9,
            "unique": pytest.approx(0.7),
            "elsewhere": 0.5,
            "nih": pytest.approx(0.85),
            "chexpert": pytest.approx(0.75),
        }
        assert found.loc["unique", "auroc_sd"] == pytest.approx(np.std([0.8, 0.6], ddof=1))
        assert set(found.index) == set(GROUPS)

    def test_a_class_that_the_test_set_does_not_define_is_left_out_and_counted(self):
        found = means(score("Edema", 0.9), score("Mass", np.nan))
        assert found.loc["all", ["auroc", "classes", "of"]].tolist() == [0.9, 1, 2]

    def test_where_the_model_lacks_a_class_the_mean_is_not_defined(self):
        found = means(
            score("Edema", 0.9, shared=True), score("Mass", np.nan, predicted=False, bce=np.nan)
        )
        assert np.isnan(found.loc["all", "auroc"]) and np.isnan(found.loc["all", "bce"])
        assert found.loc["shared", "auroc"] == 0.9


class TestOverSeeds:
    def test_mean_and_t_interval(self):
        values = [0.7, 0.8, 0.75]
        lines = [score("Edema", value, seed=seed) for seed, value in enumerate(values)]
        [line] = over_seeds(means(*lines).reset_index().query("group == 'all'")).to_dict("records")
        low, high = stats.t.interval(0.95, 2, loc=0.75, scale=stats.sem(values))
        assert line["seeds"] == 3
        assert [line["auroc"], line["auroc_low"], line["auroc_high"]] == [
            pytest.approx(0.75), pytest.approx(low), pytest.approx(high),
        ]  # fmt: skip

    def test_one_seed_has_no_interval(self):
        line = over_seeds(means(score("Edema", 0.7)).reset_index()).iloc[0]
        assert line["auroc"] == 0.7 and np.isnan(line["auroc_low"])

    def test_what_no_seed_defines_is_not_defined(self):
        line = over_seeds(means(score("Edema", np.nan, predicted=False)).reset_index()).iloc[0]
        assert line["seeds"] == 0 and np.isnan(line["auroc"])
