from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import study_runs
from cxr_study.studies.analysis.study_results import gather
from cxr_study.studies.analysis.subgroups import FEWEST, over_seeds, subgroups
from cxr_study.studies.plan.study_file import read_study

IMAGES = 80
RNG = np.random.default_rng(0)
SITES = {"nih": ["Edema", "Mass"], "chexpert": ["Edema", "Fracture"]}
LABELS = {
    "Edema": np.tile([1.0, 0.0], 40),
    "Mass": np.array([1.0] * 10 + [0.0] * 30 + [1.0] * 9 + [0.0] * 31),
    "Hernia": np.array([1.0] + [0.0] * 79),
}
PREDICTED = {name: RNG.random(IMAGES).astype(np.float32) for name in LABELS}
HALVES = ["F"] * 40 + ["M"] * 40


def area(name, rows, predicted=PREDICTED):
    """AUROC by counting pairs."""
    labels, scores = LABELS[name][rows], np.asarray(predicted[name])[rows]
    wins = scores[labels == 1][:, None] > scores[labels == 0][None]
    return wins.mean()


@pytest.fixture
def study(tmp_path):
    """Adds finished runs to a study, and measures them."""
    runs = []

    def add(models, method="surgical", test="nih", seed=0, labels=LABELS, **facts):
        run = study_runs.run(method, seed=seed, sites=SITES)
        table = study_runs.table(labels, **{"sex": "", "age": np.nan, "view": "", **facts})
        values = {(model, test): predicted for model, predicted in models.items()}
        study_runs.finish(run, tmp_path, {test: table}, values)
        runs.append(run)

    def found(**how):
        return subgroups(gather(read_study("nih-chexpert"), runs, tmp_path), **how)

    return SimpleNamespace(add=add, found=found)


def lines(found, kind):
    return found[found["kind"] == kind].set_index("subgroup")


class TestSubgroups:
    def test_means_are_over_the_classes_that_the_subgroup_defines(self, study):
        patients = [str(n // 4) for n in range(IMAGES)]
        study.add({"global": dict(reversed(PREDICTED.items()))}, sex=HALVES, patient=patients)
        found = lines(study.found(), "sex")
        women, men = np.arange(40), np.arange(40, 80)
        areas = [area(name, women) for name in LABELS]
        assert found.loc["F", ["auroc", "auroc_sd"]].tolist() == pytest.approx(
            [np.mean(areas), np.std(areas, ddof=1)]
        )
        # Men have no hernia.
        wanted = np.mean([area(name, men) for name in ("Edema", "Mass")])
        assert found.loc["M", "auroc"] == pytest.approx(wanted)
        assert found["classes"].tolist() == [3, 2] and found["of"].tolist() == [3, 3]
        assert found["patients"].tolist() == [10, 10]
        # Women: 10 with a mass, 1 with a hernia; men: 9 with a mass.
        assert found["few"].to_dict() == {"F": 1, "M": 1} and FEWEST == 10
        assert found["compared"].tolist() == [1, 1]
        compared = [area("Edema", women), area("Edema", men)]
        assert found["compared_auroc"].tolist() == pytest.approx(compared)

    def test_few_negatives_count_too(self, study):
        inverse = {name: 1 - values for name, values in LABELS.items()}
        study.add({"global": PREDICTED}, sex=HALVES, labels=inverse)
        assert lines(study.found(), "sex")["few"].to_dict() == {"F": 1, "M": 1}

    def test_without_a_class_that_all_have_enough_of_nothing_compares_them(self, study):
        rare = {"Mass": LABELS["Mass"], "Hernia": LABELS["Hernia"]}
        study.add({"global": PREDICTED}, sex=HALVES, labels=rare)
        found = lines(study.found(), "sex")
        assert found["compared"].tolist() == [0, 0] and found["compared_auroc"].isna().all()

    def test_ages_are_in_bands_of_years(self, study):
        ages = np.repeat([0.0, 39.9, 40, 59, 60, 79.5, 80, 101], 10)
        study.add({"global": PREDICTED}, age=ages)
        found = lines(study.found(), "age")
        assert found["images"].to_dict() == {"0-39": 20, "40-59": 20, "60-79": 20, "80+": 20}
        assert found.loc["80+", "auroc"] == pytest.approx(area("Edema", np.arange(60, 80)))

    def test_what_is_not_known_is_left_out_and_counted(self, study):
        ages = np.where(np.arange(IMAGES) < 30, np.nan, 50)
        study.add({"global": PREDICTED}, sex=["F"] * 60 + [""] * 20, age=ages)
        found = study.found().set_index(["kind", "subgroup"])
        assert found["images"].to_dict() == {("sex", "F"): 60, ("age", "40-59"): 50}
        assert found["unknown"].to_dict() == {("sex", "F"): 20, ("age", "40-59"): 30}

    def test_where_a_test_set_says_nothing_there_is_no_line(self, study):
        study.add({"global": PREDICTED})
        found = study.found()
        assert found.empty and {"kind", "subgroup", "auroc", "compared_auroc"} <= set(found)
        assert over_seeds(found).empty

    def test_an_image_without_a_label_does_not_count_for_its_class(self, study):
        labels = LABELS | {"Mass": np.where(np.arange(IMAGES) < 5, np.nan, LABELS["Mass"])}
        study.add({"global": PREDICTED}, sex=HALVES, labels=labels)
        wanted = [area("Edema", np.arange(40)), area("Mass", np.arange(5, 40))]
        wanted.append(area("Hernia", np.arange(40)))
        found = lines(study.found(), "sex").loc["F"]
        assert found["auroc"] == pytest.approx(np.mean(wanted))
        assert found["few"] == 2

    def test_where_the_model_lacks_a_class_no_mean_is_defined(self, study):
        study.add({"nih": {"Edema": PREDICTED["Edema"]}}, "personalised", sex=HALVES)
        found = lines(study.found(), "sex")
        assert found[["auroc", "auroc_sd", "compared_auroc"]].isna().all(axis=None)
        assert found["classes"].tolist() == [0, 0] and found["images"].tolist() == [40, 40]

    def test_sites_own_models_are_measured_on_their_own_test_split_alone(self, study):
        other = {name: 1 - values for name, values in PREDICTED.items()}
        study.add({"nih": PREDICTED, "chexpert": other}, "personalised", sex=HALVES)
        study.add({"nih": PREDICTED}, "individual", test="mimic", sex=HALVES)
        found = study.found()
        assert set(found["model"]) == {"nih"} and set(found["test"]) == {"nih"}
        areas = [area(name, np.arange(40)) for name in LABELS]
        assert lines(found, "sex").loc["F", "auroc"] == pytest.approx(np.mean(areas))


class TestOverSeeds:
    def test_means_with_their_intervals(self, study):
        values = []
        for seed in range(3):
            rng = np.random.default_rng(seed)
            predicted = {name: rng.random(IMAGES).astype(np.float32) for name in LABELS}
            study.add({"global": predicted}, seed=seed, sex=HALVES)
            values.append(area("Edema", np.arange(40), predicted))
        found = lines(over_seeds(study.found()), "sex").loc["F"]
        low, high = stats.t.interval(0.95, 2, loc=np.mean(values), scale=stats.sem(values))
        names = ["compared_auroc", "compared_auroc_low", "compared_auroc_high"]
        assert found[names].tolist() == pytest.approx([np.mean(values), low, high])
        assert found["seeds"] == 3

    def test_numbers_of_images_and_classes_are_means_too(self, study):
        study.add({"global": PREDICTED}, seed=0, sex=HALVES)
        study.add({"global": PREDICTED}, seed=1, sex=["F"] * 20 + ["M"] * 60)
        found = lines(over_seeds(study.found()), "sex").loc["F"]
        assert found[["images", "patients", "classes"]].tolist() == [30, 30, 3]
        assert found[["few", "compared"]].tolist() == [1, 1]
