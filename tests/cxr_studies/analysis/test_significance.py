import numpy as np
import pandas as pd
import pytest

import study_runs
from cxr_studies.analysis import significance as module
from cxr_studies.analysis.intervals_and_tests import compare_pairs, delong_test, holm
from cxr_studies.analysis.significance import CLASSES, RUNS, SCENARIOS, class_tests, significance
from study_runs import LACKS, of_global, scored

NAN = np.nan
TWO = {"nih": ["Edema", "Mass"], "chexpert": ["Edema", "Fracture"]}
OURS = {("2", 0): 0.8, ("4", 0): 0.7, ("10", 0): 0.65}
THEIRS = {("2", 0): 0.75, ("4", 0): 0.62, ("10", 0): 0.61}


def reached(values, method="surgical"):
    """{run: AUROCs of a global model} of {(scenario, seed): AUROC}; on MIMIC it is 1 - AUROC."""
    return {
        study_runs.run(method, "fedbn+", seed, scenario, {"a": ["Edema"], "b": ["Edema"]}): {
            ("global", "nih"): {"Edema": value},
            ("global", "mimic"): {"Edema": LACKS if value is LACKS else 1 - value},
        }
        for (scenario, seed), value in values.items()
    }


def compared(ours, theirs, pairing, test="nih"):
    """The line of a pairing over all classes."""
    found = significance(scored(reached(ours) | reached(theirs, "vanilla")))
    [line] = chosen(found, pairing, test=test)
    return line


def chosen(found, pairing, **wanted):
    """Lines of a pairing over all classes."""
    for name, value in {"pairing": pairing, "group": "all", **wanted}.items():
        found = found[found[name] == value]
    return found.to_dict("records")


def assert_compared(line, first, second):
    """A line says what the statistics say of such pairs."""
    wanted = compare_pairs(first, second)
    expected = {**vars(wanted), **vars(wanted.difference), "difference": wanted.difference.mean}
    assert line["by"] == (wanted.test or "")
    for name in (
        "pairs", "left_out", "difference", "low", "high", "statistic", "p", "normality", "t", "t_p",
    ):  # fmt: skip
        value = NAN if expected[name] is None else expected[name]
        assert line[name] == pytest.approx(value, nan_ok=True)


def test_a_pair_is_a_scenario_averaged_over_seeds_or_a_run_on_one_test_set():
    ours = OURS | {("2", 1): 0.9, ("4", 1): 0.8, ("10", 1): 0.55}
    theirs = THEIRS | {("2", 1): 0.65, ("4", 1): 0.6, ("10", 1): 0.6}
    line = compared(ours, theirs, SCENARIOS)
    assert_compared(line, [0.85, 0.75, 0.6], [0.7, 0.61, 0.605])
    assert (line["method"], line["strategy"], line["scenario"]) == ("vanilla", "fedbn+", "")
    line = compared(ours, theirs, RUNS)
    assert_compared(line, [0.8, 0.7, 0.65, 0.9, 0.8, 0.55], [0.75, 0.62, 0.61, 0.65, 0.6, 0.6])
    line = compared(ours, theirs, SCENARIOS, test="mimic")
    assert_compared(line, [0.15, 0.25, 0.4], [0.3, 0.39, 0.395])


def test_undefined_values_are_left_out_and_counted():
    ours, theirs = OURS | {("2", 1): 0.1}, THEIRS | {("2", 1): NAN}  # a seed of a scenario
    assert_compared(compared(ours, theirs, SCENARIOS), [0.8, 0.7, 0.65], [0.75, 0.62, 0.61])
    line = compared(ours, theirs, RUNS)
    assert (line["pairs"], line["left_out"]) == (3, 1)
    line = compared(OURS, THEIRS | {("4", 0): LACKS}, SCENARIOS)
    assert_compared(line, [0.8, 0.65, 0.7], [0.75, 0.61, NAN])
    assert line["mark"] == "" and line["tests"] == 0


def test_a_pair_is_a_class_of_a_scenario_averaged_over_seeds():
    aurocs = {"surgical": [(0.9, 0.8, 0.7), (0.7, 0.8, 0.6)]}
    aurocs["partial_loss"] = [(0.8, 0.5, 0.6), (0.6, 0.4, NAN)]
    both = {
        study_runs.run(method, seed=seed): dict(zip(("Edema", "Mass", "Hernia"), of, strict=True))
        for method, seeds in aurocs.items()
        for seed, of in enumerate(seeds)
    }
    [line] = chosen(significance(scored(of_global(both))), CLASSES)
    assert line["scenario"] == "2"
    assert_compared(line, [0.8, 0.8, 0.7], [0.7, 0.45, 0.6])


def test_groups_of_classes_are_tested_each():
    ours, theirs = (study_runs.run(method, sites=TWO) for method in ("surgical", "vanilla"))
    both = {ours: {"Edema": 0.9, "Mass": 0.8}, theirs: {"Edema": 0.8, "Mass": 0.5}}
    both = {run: {**aurocs, "Fracture": 0.5} for run, aurocs in both.items()}
    found = significance(scored(of_global(both, "mimic")))
    lines = found[found["pairing"] == CLASSES].set_index("group")
    pairs = {"all": 3, "shared": 1, "unique": 2, "nih": 2, "chexpert": 2}
    assert lines["pairs"].to_dict() == pairs
    assert lines.loc["unique", "difference"] == pytest.approx(0.15)
    assert lines.loc["chexpert", "difference"] == pytest.approx(0.05)


@pytest.mark.parametrize(("method", "group", "wanted"), [
    # A federation's local models are tested together, as tables have them.
    ("personalised", "nih", {"local nih": 0.1, "local chexpert": 0.2, "local mimic": 0.25}),
    ("personalised", "shared", {"local nih": 0.1, "local chexpert": 0.2, "local mimic": 0.35}),
    # Those of sites that trained alone are tested each.
    ("individual", "all", {"nih nih": 0.1, "chexpert chexpert": 0.2}),
])  # fmt: skip
def test_which_models_of_sites_are_tested_against_a_global_one(method, group, wanted):
    own = {
        ("nih", "nih"): {"Edema": 0.8, "Mass": 0.8},
        ("nih", "chexpert"): {"Edema": 0.5, "Fracture": LACKS},
        ("nih", "mimic"): {"Edema": 0.6, "Mass": 0.7, "Fracture": LACKS},
        ("chexpert", "nih"): {"Edema": 0.4, "Mass": LACKS},
        ("chexpert", "chexpert"): {"Edema": 0.7, "Fracture": 0.7},
        ("chexpert", "mimic"): {"Edema": 0.5, "Mass": LACKS, "Fracture": 0.3},
    }
    ours = {("global", test): dict.fromkeys(names, 0.9) for (_, test), names in own.items()}
    runs = {study_runs.run(sites=TWO): ours, study_runs.run(method, sites=TWO): own}
    found = chosen(significance(scored(runs)), CLASSES, group=group)
    got = {f"{line['model']} {line['test']}": line["difference"] for line in found}
    assert got == pytest.approx(wanted)


def test_the_reference_is_never_the_model_of_its_server():
    """Where every site keeps its batch norm, the server has a model that no hospital would use."""
    own = {("nih", "nih"): {"Edema": 0.9}, ("server", "nih"): {"Edema": 0.5}}
    ours, theirs = study_runs.run("surgical", "fedbn"), study_runs.run("vanilla", "fedbn")
    found = chosen(significance(scored({ours: own, theirs: own})), SCENARIOS)
    got = {line["model"]: line["difference"] for line in found}
    assert got == pytest.approx({"local": 0.0, "server": 0.4})


def test_all_others_are_tested_against_the_reference_its_other_strategies_too():
    rows = [("surgical", "fedbn+"), ("surgical", "fedavg"), ("vanilla", "fedavg")]
    both = {study_runs.run(*row): {"Edema": 0.9 - 0.1 * n} for n, row in enumerate(rows)}
    found = chosen(significance(scored(of_global(both))), SCENARIOS)
    assert [(line["method"], line["strategy"]) for line in found] == rows[1:]
    assert [line["difference"] for line in found] == pytest.approx([0.1, 0.2])


@pytest.mark.parametrize("rows", [[("surgical", "fedbn+")], [("vanilla", "fedavg")]])
def test_where_nothing_can_be_compared_there_is_no_line(rows):
    found = significance(scored(of_global({study_runs.run(*row): {"Edema": 0.9} for row in rows})))
    assert found.empty and {*module.FAMILY, "difference", "holm", "mark"} <= set(found)


def test_p_is_adjusted_over_all_rows_and_scenarios_of_a_test_set_and_group():
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
    found = significance(scored(both))
    sizes = found[found["group"] == "all"].groupby(module.FAMILY)["tests"].first()
    assert sizes.loc[CLASSES].tolist() == [6, 6] and sizes.loc[SCENARIOS].tolist() == [2, 2]
    for _, family in found.groupby(module.FAMILY):
        wanted = holm(family["p"])
        assert family["holm"].tolist() == pytest.approx(wanted.tolist(), nan_ok=True)
        assert family["mark"].tolist() == [module.significance_mark(p) for p in wanted]
    assert set(found["mark"]) > {"ns", "*"}


def test_a_test_that_could_not_decide_is_no_member():
    tests = pd.DataFrame({"of": [1, 1, 1, 2], "p": [0.02, NAN, 0.03, 0.04]})
    lines = module.adjusted(tests, ["of"])
    assert lines["tests"].tolist() == [2, 2, 2, 1]
    assert lines["holm"].tolist() == pytest.approx([0.04, NAN, 0.04, 0.04], nan_ok=True)
    assert lines["mark"].tolist() == ["*", "", "*", "*"]


RNG = np.random.default_rng(0)
IMAGES = 60
LABELS = {name: (RNG.random(IMAGES) < 0.4).astype(float) for name in ("Edema", "Mass", "Fracture")}
LABELS["Mass"][:10] = np.nan
LABELS["Fracture"][:] = 0.0
LABELS["Fracture"][3] = 1.0  # a single positive
PATIENTS = [str(n // 3) for n in range(IMAGES)]
TESTS = dict.fromkeys(("nih", "chexpert", "mimic"), study_runs.table(LABELS, patient=PATIENTS))
FIGURES = ["surgical", "other", "difference", "low", "high", "z", "p"]


def predicted(skill, seed, names=tuple(LABELS)):
    rng = np.random.default_rng(seed)
    return {
        name: (skill * np.nan_to_num(LABELS[name]) + rng.random(IMAGES)).astype(np.float32) / 5
        for name in names
    }


def test_every_class_is_tested_against_surgical_aggregation_with_the_same_scenario_and_seed(
    study, reported
):
    ours = [predicted(1, seed) for seed in (10, 11)]
    vanilla, own = predicted(0.2, 12), predicted(0.5, 13, ("Edema", "Mass"))
    for seed in (0, 1):
        study.add({"global": ours[seed]}, TESTS, seed=seed)
    study.add({"global": vanilla}, TESTS, "vanilla", seed=1)
    study.add({"global": vanilla}, TESTS, "vanilla", seed=1, scenario="20")
    study.add({"nih": own, "chexpert": own}, TESTS, "personalised", "fedbn")
    study.runs.append(study_runs.run("vanilla", seed=0))
    pairs = {("vanilla", "fedbn+", 1, test): (ours[1], vanilla) for test in TESTS}
    for test in ("nih", "chexpert"):  # a local model counts on its site's test split alone
        pairs["personalised", "fedbn", 0, test] = (ours[0], own)
    found = class_tests(study.gathered())
    assert reported == {"testing classes": [(1, 2), (2, 2)]}
    lines = found.set_index(["method", "strategy", "seed", "test", "class"])
    assert len(lines) == 3 * len(pairs) and set(lines["scenario"]) == {"2"}
    for pair, (first, second) in pairs.items():
        for name, values in LABELS.items():
            known, line = ~np.isnan(values), lines.loc[(*pair, name)]
            assert line["images"] == known.sum()
            assert line["patients"] == len({PATIENTS[n] for n in np.flatnonzero(known)})
            assert line["positives"] == (values == 1).sum()
            if name == "Fracture":  # with a single positive; local models lack it, too
                assert line[FIGURES].isna().all() and line["mark"] == ""
                continue
            wanted = delong_test(values[known], first[name][known], second[name][known])
            wanted = {**vars(wanted), "surgical": wanted.first, "other": wanted.second}
            assert line[FIGURES].tolist() == pytest.approx([wanted[each] for each in FIGURES])
    assert set(found.groupby(module.CLASS_FAMILY)["tests"].first()) == {2}


def test_figures_are_numbers_where_none_is_defined_as_where_a_model_lacks_the_class(study):
    table = study_runs.table({"Mass": LABELS["Mass"]})
    study.add({"global": predicted(1, 1)}, {"nih": table})
    study.add({"global": predicted(1, 1, ("Edema",))}, {"nih": table}, "vanilla")
    figures = class_tests(study.gathered())[[*FIGURES, "holm"]]
    assert figures.isna().all(axis=None) and set(figures.dtypes) == {np.dtype(float)}


def test_models_that_were_tested_on_other_images_are_not_compared(study):
    other = study_runs.table(LABELS, patient=PATIENTS[::-1])
    study.add({"global": predicted(1, 1)}, TESTS)
    study.add({"global": predicted(1, 2)}, {"nih": other}, "vanilla")
    found = class_tests(study.gathered())
    assert found.empty and {*module.CLASS_FAMILY, "class", "p", "holm", "mark"} <= set(found)
