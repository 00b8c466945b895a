import numpy as np
import pytest
from scipy import stats

import study_runs
from cxr_studies.analysis.subgroups import over_seeds, subgroups
from cxr_study.evaluation.subgroup_scores import FEWEST

IMAGES = 80
LABELS = {
    "Edema": np.tile([1.0, 0.0], 40),
    "Mass": np.array([np.nan] * 2 + [1.0] * 10 + [0.0] * 28 + [1.0] * 9 + [0.0] * 31),
    "Hernia": np.array([1.0] + [0.0] * 79),
}
HALVES = ["F"] * 40 + ["M"] * 40
WOMEN, MEN = np.arange(40), np.arange(40, 80)


def predicted(seed=0):
    rng = np.random.default_rng(seed)
    return {name: rng.random(IMAGES).astype(np.float32) for name in LABELS}


def area(name, rows, scores):
    """AUROC by counting pairs."""
    labels, scores = LABELS[name][rows], scores[name][rows]
    wins = scores[labels == 1][:, None] > scores[labels == 0][None]
    return wins.mean()


@pytest.fixture
def add(study):
    """Adds a run on a test set with some sex, age and view of each image."""

    def add(
        scores=None, labels=LABELS, models=("global",), tests=("nih",), method="surgical", seed=0,
        **facts,
    ):  # fmt: skip
        table = study_runs.table(labels, **{"sex": "", "age": np.nan, "view": "", **facts})
        reached = dict.fromkeys(models, scores or predicted())
        study.add(reached, dict.fromkeys(tests, table), method, seed=seed)

    return add


@pytest.fixture
def lines(study):
    """Measures the runs; returns the subgroups of a kind."""

    def lines(kind="sex", of=lambda found: found):
        found = of(subgroups(study.gathered()))
        return found[found["kind"] == kind].set_index("subgroup")

    return lines


def test_means_are_over_the_classes_that_the_subgroup_defines(add, lines):
    scores = predicted()
    add(dict(reversed(scores.items())), sex=HALVES, patient=[str(n // 4) for n in range(IMAGES)])
    found = lines()
    areas = [area(name, WOMEN, scores) for name in LABELS]
    figures = found.loc["F", ["auroc", "auroc_sd"]].tolist()
    assert figures == pytest.approx([np.mean(areas), np.std(areas, ddof=1)])
    # Men have no hernia.
    wanted = np.mean([area(name, MEN, scores) for name in ("Edema", "Mass")])
    assert found.loc["M", "auroc"] == pytest.approx(wanted)
    assert found["classes"].tolist() == [3, 2] and found["of"].tolist() == [3, 3]
    assert found["patients"].tolist() == [10, 10]
    # Women: 10 with a mass, 1 with a hernia; men: 9 with a mass.
    assert found["few"].to_dict() == {"F": 1, "M": 1} and FEWEST == 10
    assert found["compared"].tolist() == [1, 1]
    compared = [area("Edema", rows, scores) for rows in (WOMEN, MEN)]
    assert found["compared_auroc"].tolist() == pytest.approx(compared)


def test_few_negatives_count_too(add, lines):
    add(labels={name: 1 - values for name, values in LABELS.items()}, sex=HALVES)
    assert lines()["few"].to_dict() == {"F": 1, "M": 1}


def test_without_a_class_that_all_have_enough_of_nothing_compares_them(add, lines):
    add(labels={name: LABELS[name] for name in ("Mass", "Hernia")}, sex=HALVES)
    found = lines()
    assert found["compared"].tolist() == [0, 0] and found["compared_auroc"].isna().all()


def test_ages_are_in_bands_of_years_and_what_is_not_known_is_left_out_and_counted(add, lines):
    ages = np.repeat([0.0, 39.9, 40, 59, 60, 79.5, 80, 101, np.nan, np.nan], 8)
    add(age=ages, sex=["F"] * 60 + [""] * 20)
    found = lines("age")
    assert found["images"].to_dict() == {"0-39": 16, "40-59": 16, "60-79": 16, "80+": 16}
    assert set(found["unknown"]) == {16} and lines()["unknown"].to_dict() == {"F": 20}
    areas = [area(name, np.arange(48, 64), predicted()) for name in ("Edema", "Mass")]
    assert found.loc["80+", "auroc"] == pytest.approx(np.mean(areas))
    assert lines("view").empty


def test_without_descriptors_there_is_no_line(add, study):
    add()
    found = subgroups(study.gathered())
    assert found.empty and {"kind", "subgroup", "auroc", "compared_auroc"} <= set(found)
    assert over_seeds(found).empty


def test_where_the_model_lacks_a_class_no_mean_is_defined(add, lines):
    add({"Edema": predicted()["Edema"]}, models=["nih"], method="personalised", sex=HALVES)
    found = lines()
    assert found[["auroc", "auroc_sd", "compared_auroc"]].isna().all(axis=None)
    assert found["classes"].tolist() == [0, 0] and found["images"].tolist() == [40, 40]


def test_local_models_are_measured_on_their_own_test_split_alone(add, lines):
    models = ["nih", "chexpert"]
    add(models=models, tests=["nih", "mimic"], method="personalised", sex=HALVES)
    found = lines()
    assert set(found["model"]) == {"nih"} and set(found["test"]) == {"nih"}


def test_over_seeds_there_are_means_with_intervals_and_mean_counts(add, lines):
    areas = []
    for seed, women in enumerate((40, 40, 40, 20)):
        scores = predicted(seed)
        add(scores, seed=seed, sex=["F"] * women + ["M"] * (IMAGES - women))
        areas.append(area("Edema", np.arange(women), scores))
    found = lines(of=over_seeds).loc["F"]
    low, high = stats.t.interval(0.95, 3, loc=np.mean(areas), scale=stats.sem(areas))
    names = ["compared_auroc", "compared_auroc_low", "compared_auroc_high"]
    assert found[names].tolist() == pytest.approx([np.mean(areas), low, high])
    assert found[["seeds", "images", "patients", "classes"]].tolist() == [4, 35, 35, 3]
    assert found[["few", "compared"]].tolist() == [1.25, 1]
