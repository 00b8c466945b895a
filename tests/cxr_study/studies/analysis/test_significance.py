import numpy as np
import pandas as pd
import pytest

import study_runs
from cxr_study.evaluation.paired_tests import compare_pairs, holm, mark
from cxr_study.studies.analysis.significance import (
    CLASSES,
    FAMILY,
    RUNS,
    SCENARIOS,
    adjusted,
    significance,
)
from study_scores import LACKS, results

NAN = np.nan
ALONE = {"a": ["Edema"], "b": ["Edema"]}
OURS = {("2", 0): 0.8, ("4", 0): 0.7, ("10", 0): 0.65}
THEIRS = {("2", 0): 0.75, ("4", 0): 0.62, ("10", 0): 0.61}
TWO = {"nih": ["Edema", "Mass"], "chexpert": ["Edema", "Fracture"]}


def reached(values, *planned, method="surgical", strategy="fedbn+", test="nih"):
    """{run: one AUROC of a global model} of {(scenario, seed): AUROC}."""
    return {
        study_runs.run(method, strategy, seed, scenario, ALONE): {
            ("global", test): {"Edema": value}
        }
        for (scenario, seed), value in values.items()
    }


def chosen(found, pairing, **wanted):
    """Lines of a pairing over all classes."""
    for name, value in {"pairing": pairing, "group": "all", **wanted}.items():
        found = found[found[name] == value]
    return found.to_dict("records")


def assert_compared(line, first, second):
    """A line says what the statistics say of such pairs."""
    wanted = compare_pairs(first, second)
    assert (line["pairs"], line["left_out"]) == (wanted.pairs, wanted.left_out)
    interval = wanted.difference
    assert line["difference"] == pytest.approx(interval.mean)
    assert [line["low"], line["high"]] == pytest.approx([interval.low, interval.high])
    assert line["by"] == (wanted.test or "")
    for name, value in {
        "statistic": wanted.statistic, "p": wanted.p, "normality": wanted.normality,
        "t": wanted.t, "t_p": wanted.t_p,
    }.items():  # fmt: skip
        assert line[name] == pytest.approx(NAN if value is None else value, nan_ok=True)


class TestScenarios:
    def test_a_pair_is_a_scenario_surgical_minus_other(self):
        found = significance(results(reached(OURS) | reached(THEIRS, method="vanilla")))
        [line] = chosen(found, SCENARIOS)
        assert (line["method"], line["strategy"], line["test"]) == ("vanilla", "fedbn+", "nih")
        assert line["scenario"] == ""
        assert line["difference"] == pytest.approx((0.05 + 0.08 + 0.04) / 3)
        assert_compared(line, [0.8, 0.7, 0.65], [0.75, 0.62, 0.61])

    def test_its_value_is_the_mean_over_seeds_and_each_run_is_a_pair_of_its_own(self):
        ours = OURS | {("2", 1): 0.9, ("4", 1): 0.8, ("10", 1): 0.55}
        theirs = THEIRS | {("2", 1): 0.65, ("4", 1): 0.6, ("10", 1): 0.6}
        found = significance(results(reached(ours) | reached(theirs, method="vanilla")))
        [line], [runs] = chosen(found, SCENARIOS), chosen(found, RUNS)
        assert_compared(line, [0.85, 0.75, 0.6], [0.7, 0.61, 0.605])
        assert_compared(runs, [0.8, 0.7, 0.65, 0.9, 0.8, 0.55], [0.75, 0.62, 0.61, 0.65, 0.6, 0.6])

    def test_what_one_side_does_not_define_is_left_out_and_counted(self):
        ours, theirs = OURS | {("2", 1): 0.1}, THEIRS | {("2", 1): NAN}  # a seed of a scenario
        found = significance(results(reached(ours) | reached(theirs, method="vanilla")))
        [line], [runs] = chosen(found, SCENARIOS), chosen(found, RUNS)
        assert_compared(line, [0.8, 0.7, 0.65], [0.75, 0.62, 0.61])
        assert (runs["pairs"], runs["left_out"]) == (3, 1)
        theirs = THEIRS | {("4", 0): LACKS}
        found = significance(results(reached(OURS) | reached(theirs, method="vanilla")))
        [line] = chosen(found, SCENARIOS)
        assert (line["pairs"], line["left_out"]) == (2, 1)
        assert line["difference"] == pytest.approx(0.045)
        assert np.isnan(line["p"]) and line["mark"] == "" and line["tests"] == 0

    def test_test_sets_are_apart(self):
        there = [reached(OURS), reached(THEIRS, method="vanilla")]
        for values in there:
            for run, models in values.items():
                models["global", "mimic"] = {"Edema": 0.3 if run.row.method == "surgical" else 0.4}
        found = significance(results(there[0] | there[1]))
        assert chosen(found, SCENARIOS, test="mimic")[0]["difference"] == pytest.approx(-0.1)
        assert chosen(found, SCENARIOS, test="nih")[0]["difference"] == pytest.approx(0.17 / 3)


class TestClasses:
    def test_a_pair_is_a_class_of_a_scenario_averaged_over_seeds(self):
        ours = [
            {"Edema": 0.9, "Mass": 0.8, "Hernia": 0.7},
            {"Edema": 0.7, "Mass": 0.8, "Hernia": 0.6},
        ]
        theirs = [
            {"Edema": 0.8, "Mass": 0.5, "Hernia": 0.6},
            {"Edema": 0.6, "Mass": 0.4, "Hernia": NAN},
        ]
        both = {
            study_runs.run(method, seed=seed): {("global", "nih"): classes}
            for method, seeds in (("surgical", ours), ("partial_loss", theirs))
            for seed, classes in enumerate(seeds)
        }
        [line] = chosen(significance(results(both)), CLASSES)
        assert line["scenario"] == "2"
        assert_compared(line, [0.8, 0.8, 0.7], [0.7, 0.45, 0.6])

    def test_groups_of_classes_are_tested_each(self):
        both = {
            study_runs.run(method, sites=TWO): {
                ("global", "mimic"): {"Edema": edema, "Mass": mass, "Fracture": 0.5}
            }
            for method, edema, mass in (("surgical", 0.9, 0.8), ("vanilla", 0.8, 0.5))
        }
        found = significance(results(both))
        lines = found[found["pairing"] == CLASSES].set_index("group")
        assert lines["pairs"].to_dict() == {
            "all": 3, "shared": 1, "unique": 2, "nih": 2, "chexpert": 2,
        }  # fmt: skip
        assert lines.loc["unique", "difference"] == pytest.approx(0.15)
        assert lines.loc["chexpert", "difference"] == pytest.approx(0.05)


class TestRows:
    @pytest.fixture
    def own(self):
        """Models of NIH and CheXpert, of either way to have them, against 0.9 of a global one."""
        reached = {
            ("nih", "nih"): {"Edema": 0.8, "Mass": 0.8},
            ("nih", "chexpert"): {"Edema": 0.5, "Fracture": LACKS},
            ("nih", "mimic"): {"Edema": 0.6, "Mass": 0.7, "Fracture": LACKS},
            ("chexpert", "nih"): {"Edema": 0.4, "Mass": LACKS},
            ("chexpert", "chexpert"): {"Edema": 0.7, "Fracture": 0.7},
            ("chexpert", "mimic"): {"Edema": 0.5, "Mass": LACKS, "Fracture": 0.3},
        }
        ours = {("global", test): dict.fromkeys(names, 0.9) for (_, test), names in reached.items()}

        def differences(method, group):
            """(model, test set) -> mean difference over classes."""
            runs = {study_runs.run("surgical", sites=TWO): ours}
            runs[study_runs.run(method, sites=TWO)] = reached
            lines = chosen(significance(results(runs)), CLASSES, group=group)
            return {(line["model"], line["test"]): round(line["difference"], 3) for line in lines}

        return differences

    def test_a_federations_own_models_are_tested_together_as_tables_have_them(self, own):
        assert own("personalised", "all") == {("local", "nih"): 0.1, ("local", "chexpert"): 0.2}
        assert own("personalised", "nih") == {
            ("local", "nih"): 0.1, ("local", "chexpert"): 0.2, ("local", "mimic"): 0.25,
        }  # fmt: skip
        assert own("personalised", "shared")["local", "mimic"] == 0.35  # of both sites

    def test_models_that_data_sets_have_trained_alone_are_tested_each(self, own):
        assert own("individual", "all") == {("nih", "nih"): 0.1, ("chexpert", "chexpert"): 0.2}
        assert own("individual", "shared") == {
            ("nih", "nih"): 0.1, ("nih", "chexpert"): 0.4, ("nih", "mimic"): 0.3,
            ("chexpert", "nih"): 0.5, ("chexpert", "chexpert"): 0.2, ("chexpert", "mimic"): 0.4,
        }  # fmt: skip

    def test_all_others_are_tested_against_the_reference_its_other_strategies_too(self):
        rows = [("surgical", "fedbn+"), ("surgical", "fedavg"), ("vanilla", "fedavg")]
        both = {
            study_runs.run(*row): {("global", "nih"): {"Edema": 0.9 - 0.1 * place}}
            for place, row in enumerate(rows)
        }
        found = chosen(significance(results(both)), SCENARIOS)
        assert [(line["method"], line["strategy"]) for line in found] == rows[1:]
        assert [line["difference"] for line in found] == pytest.approx([0.1, 0.2])

    @pytest.mark.parametrize("rows", [[("surgical", "fedbn+")], [("vanilla", "fedavg")]])
    def test_where_nothing_can_be_compared_there_is_no_line(self, rows):
        both = {study_runs.run(*row): {("global", "nih"): {"Edema": 0.9}} for row in rows}
        found = significance(results(both))
        assert found.empty and {*FAMILY, "difference", "holm", "mark"} <= set(found)


class TestFamilies:
    def test_p_is_adjusted_over_all_rows_and_scenarios_of_a_test_set_and_group(self):
        rng = np.random.default_rng(0)
        names = ("Edema", "Mass", "Hernia", "Nodule", "Fibrosis", "Pneumonia")
        both = {
            study_runs.run(method, scenario=scenario): {
                ("global", test): dict(zip(names, rng.normal(mean, 0.05, 6), strict=True))
                for test in ("nih", "mimic")
            }
            for scenario in ("2", "4", "10")
            for method, mean in (("surgical", 0.7), ("vanilla", 0.62), ("partial_loss", 0.66))
        }
        found = significance(results(both))
        sizes = found[found["group"] == "all"].groupby(FAMILY)["tests"].first()
        assert sizes.loc[CLASSES].tolist() == [6, 6] and sizes.loc[SCENARIOS].tolist() == [2, 2]
        for _, family in found.groupby(FAMILY):
            wanted = holm([None if np.isnan(p) else p for p in family["p"]])
            assert family["holm"].tolist() == pytest.approx(
                [NAN if p is None else p for p in wanted], nan_ok=True
            )
            assert family["mark"].tolist() == [mark(p) for p in wanted]
        assert set(found["mark"]) > {"ns", "*"}

    def test_a_test_that_could_not_decide_is_no_member(self):
        lines = adjusted(pd.DataFrame({"of": [1, 1, 1, 2], "p": [0.02, NAN, 0.03, 0.04]}), ["of"])
        assert lines["tests"].tolist() == [2, 2, 2, 1]
        assert lines["holm"].tolist() == pytest.approx([0.04, NAN, 0.04, 0.04], nan_ok=True)
        assert lines["mark"].tolist() == ["*", "", "*", "*"]
