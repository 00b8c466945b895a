import numpy as np
import pytest

import study_runs
from cxr_studies.analysis.class_tests import FAMILY, class_tests
from cxr_studies.analysis.delong import delong_test
from cxr_studies.analysis.paired_tests import holm, mark

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


def test_every_class_is_tested_against_surgical_aggregation_with_the_same_scenario_and_seed(study):
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
    reported = []
    found = class_tests(study.gathered(), report=lambda *done: reported.append(done))
    assert reported == [(1, 2), (2, 2)]
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
    for _, family in found.groupby(FAMILY):
        adjusted = holm([None if np.isnan(p) else p for p in family["p"]])
        assert family["tests"].tolist() == [2] * 3
        assert family["mark"].tolist() == [mark(p) for p in adjusted]
        wanted = [np.nan if p is None else p for p in adjusted]
        assert family["holm"].tolist() == pytest.approx(wanted, nan_ok=True)


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
    assert found.empty and {*FAMILY, "class", "p", "holm", "mark"} <= set(found)
