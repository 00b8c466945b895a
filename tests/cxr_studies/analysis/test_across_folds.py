from itertools import product

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import study_runs
from cxr_studies.analysis import across_folds as module
from cxr_studies.analysis.across_folds import GROUPS, across_folds

FOLDS, PATIENTS = 2, 30
SITES = ("nih", "chexpert")
OWN = {"nih": ("Edema", "Mass"), "chexpert": ("Edema", "Fracture")}
NAMES = ("Edema", "Fracture", "Mass")
PUBLISHED, ALONE = ("surgical", "fedbn+"), ("individual", "fedavg")


def finish(study, seeds):
    """Runs of two folds; (row, site, class) -> seed -> AUROC, by scikit-learn.

    Args:
        study: Where they are made up.
        seeds: Row -> its seeds; seed s tests fold s modulo 2.
    """
    rng = np.random.default_rng(7)
    # Of Fracture a site has twelve positive patients in all folds, however many seeds.
    positives = {"Edema": 12, "Fracture": 6, "Mass": 12}
    labels = {name: (np.arange(PATIENTS) < n).astype(float) for name, n in positives.items()}
    tests = {}
    for site, fold in product(SITES, range(FOLDS)):
        patients = [f"{site}{fold}-{number}" for number in range(PATIENTS)]
        tests[site, fold] = study_runs.table(labels, patient=patients)
    areas = {}
    for seed in sorted({seed for of_row in seeds.values() for seed in of_row}):
        own = {site: tests[site, seed % FOLDS] for site in SITES}
        for row, skill in ((PUBLISHED, 2), (ALONE, 1)):
            if seed not in seeds[row]:
                continue
            models = {}
            for site in SITES:
                names = NAMES if row == PUBLISHED else OWN[site]
                scores = study_runs.probabilities({n: labels[n] for n in names}, skill, rng)
                models["global" if row == PUBLISHED else site, site] = scores
                if row == ALONE:  # what it says of others' patients does not count
                    other = next(each for each in SITES if each != site)
                    models[site, other] = {name: rng.random(PATIENTS) for name in names}
                for name in names:
                    area = roc_auc_score(labels[name], scores[name].astype(np.float32))
                    areas.setdefault((row, site, name), {})[seed] = area
            study.finish(models, own, method=row[0], strategy=row[1], seed=seed)
    return areas


@pytest.fixture
def few(monkeypatch):
    """Twenty patients are enough for a mean."""
    least = {name: (kinds, min(patients, 20)) for name, (kinds, patients) in GROUPS.items()}
    monkeypatch.setattr(module, "GROUPS", least)
    monkeypatch.setattr(module, "FEWEST", 20)


@pytest.fixture
def made(study, few):
    """Two seeds of two folds; mean AUROC of each row at each place."""
    areas = finish(study, {row: range(2 * FOLDS) for row in (PUBLISHED, ALONE)})
    means = {key: np.mean(list(values.values())) for key, values in areas.items()}
    return across_folds(study.gathered(), FOLDS, resamples=50), means


def test_an_auroc_that_no_resample_changes_has_no_interval(study, few):
    labels = (np.arange(PATIENTS) < 12).astype(float)
    sure = {"Edema": labels, "Mass": labels, "Fracture": labels}
    unsure = sure | {"Edema": np.random.default_rng(0).random(PATIENTS)}
    for seed in range(FOLDS):
        tests = {"nih": study_runs.table(sure, patient=[f"{seed}-{n}" for n in range(PATIENTS)])}
        study.add({"global": sure}, tests, *PUBLISHED, seed=seed)
        study.add({"global": unsure}, tests, "vanilla", seed=seed)
    frame = across_folds(study.gathered(), FOLDS, resamples=50)
    for other, group, exists in (
        (None, "nih: Mass", False),
        (("vanilla", ""), "nih: Mass", False),
        (("vanilla", ""), "nih: Edema", True),
    ):
        found = line(frame, PUBLISHED, other, group)
        assert np.isfinite(found["auroc"])
        assert np.isfinite([found["auroc_low"], found["auroc_high"]]).all() == exists


def line(frame, row, other, group):
    names = (row[0], other[0] if other else "", group)
    wanted = "method == {!r} and other_method == {!r} and group == {!r}".format(*names)
    (found,) = frame.query(wanted).to_dict("records")
    return found


def test_areas_of_folds_and_seeds_are_averaged_over_the_classes_with_enough_patients(made):
    frame, means = made
    edema, mass, other = ("nih", "Edema"), ("nih", "Mass"), ("chexpert", "Edema")
    there, rare = ("chexpert", "Mass"), ("chexpert", "Fracture")
    places = {
        "own": [edema, mass, other], "shared": [edema, other], "unique": [mass],
        "elsewhere": [there], "elsewhere, few": [("nih", "Fracture"), there],
        "own, nih": [edema, mass], "own, chexpert": [other], "chexpert: Fracture": [rare],
    }  # fmt: skip
    for group, of in places.items():
        found = line(frame, PUBLISHED, None, group)
        assert found["classes"] == len(of)
        assert found["auroc"] == pytest.approx(np.mean([means[(PUBLISHED, *each)] for each in of]))
        assert found["auroc_low"] < found["auroc"] < found["auroc_high"]
        names = {name for _, name in of}
        assert found["patients"] == FOLDS * (6 if "Fracture" in names else 12)
    singles = frame[frame["group"].str.contains(": ")]
    assert list(singles["other_method"]).count("") == 6 + 4
    # Of a difference those alone that have enough patients, and that both predict.
    compared = {*singles.loc[singles["other_method"] != "", "group"]}
    assert compared == {"nih: Edema", "nih: Mass", "chexpert: Edema"}
    assert not ((frame["group"] == "elsewhere") & (frame["method"] == "individual")).any()


def test_differences_are_paired_and_of_what_both_predict(made):
    frame, means = made
    there, back = (line(frame, *pair, "own") for pair in ((PUBLISHED, ALONE), (ALONE, PUBLISHED)))
    both = [("nih", "Edema"), ("nih", "Mass"), ("chexpert", "Edema")]
    expected = np.mean([means[(PUBLISHED, *each)] - means[(ALONE, *each)] for each in both])
    assert there["auroc"] == pytest.approx(expected) and there["auroc_low"] > 0
    turned = [-back[end] for end in ("auroc", "auroc_high", "auroc_low")]
    assert turned == pytest.approx([there[end] for end in ("auroc", "auroc_low", "auroc_high")])
    width = there["auroc_high"] - there["auroc_low"]
    alone = line(frame, ALONE, None, "own")
    assert 0 < width < 2 * (alone["auroc_high"] - alone["auroc_low"])


def test_a_difference_is_over_the_seeds_of_both_and_a_fold_counts_once(study, few):
    areas = finish(study, {PUBLISHED: (0, 1, 2), ALONE: (0, 2)})
    frame = across_folds(study.gathered(), FOLDS, resamples=50)
    ours, theirs = (areas[row, "nih", "Mass"] for row in (PUBLISHED, ALONE))
    found = line(frame, PUBLISHED, ALONE, "nih: Mass")
    assert found["auroc"] == pytest.approx(np.mean([ours[seed] - theirs[seed] for seed in (0, 2)]))
    assert found["patients"] == 12  # of fold 0
    whole = line(frame, PUBLISHED, None, "nih: Mass")
    assert whole["auroc"] == pytest.approx(np.mean([np.mean([ours[0], ours[2]]), ours[1]]))
    assert whole["patients"] == 24
