import numpy as np
import pytest

import study_runs
from cxr_studies.plan import run_folder as folder
from cxr_studies.plan.run_folder import FEATURES_FILE, FEATURES_OF, RUNS, featured_rows
from cxr_studies.report.figures import predicted as module
from cxr_studies.report.figures.predicted import FEWEST, MOST, embedding, reliability_diagram
from cxr_study.common.wording import FEW_IMAGES
from drawn_texts import legend

IMAGES = 40
NIH = ("global", "nih")
SITES = {"nih": ["Edema", "Mass"], "chexpert": ["Edema", "Fracture"]}


def labels(positives):
    """So many positive images first, then negatives."""
    return np.repeat([1.0, 0.0], [positives, IMAGES - positives])


@pytest.fixture
def finish(made_up):
    """A run on one test set for each of `predicted`, of values or of one for all images."""

    def finish(predicted, positives, **run):
        table = study_runs.table({name: labels(number) for name, number in positives.items()})
        output = {
            key: {name: np.broadcast_to(values, IMAGES) for name, values in each.items()}
            for key, each in predicted.items()
        }
        made_up.finish(output, tests={test: table for _, test in predicted}, **run)

    return finish


@pytest.fixture
def panels(made_up, drawn):
    """The panels of a diagram of scenario 2."""
    return lambda test="nih": drawn(reliability_diagram, made_up.results(), "2", test, "r").axes


def points(axes):
    """Marked points, line by line."""
    marker_style = [line for line in axes.get_lines() if line.get_marker() != "None"]
    return [line.get_xydata().round(4).tolist() for line in marker_style]


def test_predictions_of_all_labelled_classes_and_seeds_are_pooled(finish, panels):
    positives = {"Edema": 10, "Mass": 20}
    finish({NIH: {"Edema": 0.25, "Mass": 0.25, "Hernia": 0.9}}, positives)
    finish({NIH: {"Edema": 0.25, "Mass": 0.75}}, positives, seed=1)
    [axes] = panels()
    # 0.25 is predicted 120 times, 40 of them positive; 0.75 40 times, 20 of them positive
    assert points(axes) == [[[0.25, round(1 / 3, 4)], [0.75, 0.5]]]
    assert legend(axes) == [f"fedbn+ {(40 - 30 + 30 - 20) / 160:.3f}"]
    assert axes.get_legend().get_title().get_text() == "pooled ECE"


def test_a_method_has_a_panel_and_each_of_its_strategies_a_line(finish, panels, made_up):
    both = {"Edema": 20}
    finish({NIH: {"Edema": 0.5}, ("global", "mimic"): {"Edema": 0.1}}, both, strategy="fedavg")
    finish({NIH: {"Edema": 0.75}}, both)
    finish({NIH: {"Edema": 0.9}}, both, scenario="4")
    finish({NIH: {"Edema": 0.7}}, both, method="vanilla")
    every = panels()
    assert list(map(points, every)) == [[[[0.5, 0.5]], [[0.75, 0.5]]], [[[0.7, 0.5]]]]
    assert legend(every[0]) == ["fedavg 0.000", "fedbn+ 0.250"]
    titles = [axes.get_title(loc="left") for axes in every]
    assert titles == ["Surgical aggregation", "Vanilla FL"]
    assert every[0].figure.get_supxlabel() == "probability on NIH"
    for scenario, test in (("8", "nih"), ("4", "mimic")):  # where nothing was tested
        assert reliability_diagram(made_up.results(), scenario, test, "r") is None


def test_a_bin_with_few_predictions_has_no_marker_but_counts(finish, panels):
    few = FEW_IMAGES - 1
    predicted = np.repeat([0.75, 0.25], [few, IMAGES - few]).astype(float)
    finish({NIH: {"Edema": predicted}}, {"Edema": 0})
    [axes] = panels()
    assert points(axes) == [[]]
    assert legend(axes) == [f"fedbn+ {predicted.mean():.3f}"]
    more = np.repeat([0.25, 0.75], [IMAGES - 5, 5])  # with the first class 46 and 34
    finish({NIH: {"Edema": more}}, {"Edema": 0}, seed=1)
    assert points(panels()[0]) == [[[0.25, 0], [0.75, 0]]]


def test_images_that_are_not_labelled_and_models_that_do_not_count_are_left_out(made_up, panels):
    known = np.append(labels(20), [np.nan] * IMAGES)
    predicted = {"Edema": np.repeat([0.5, 1.0], IMAGES)}
    other = {"Edema": np.full(2 * IMAGES, 0.9)}
    tests = {"nih": study_runs.table({"Edema": known})}
    output = {("nih", "nih"): predicted, ("chexpert", "nih"): other}
    made_up.finish(output, tests=tests, sites=SITES, method="personalised")
    assert points(panels()[0]) == [[[0.5, 0.5]]]


OF_NIH, OF_MIMIC = (module._TESTS[test][0] for test in ("nih", "mimic"))
PRESENT, ABSENT = module._PRESENT[0], module._ABSENT[0]


@pytest.fixture
def featured(made_up):
    """Finishes a run with features, which are a cluster for each test set."""

    def featured(images=30, tests=("nih", "mimic"), labels=None, model="global", **run):
        rng = np.random.default_rng(0)
        chosen = labels or {"Edema": [1.0, 0.0]}
        table = study_runs.table({c: np.resize(values, images) for c, values in chosen.items()})
        predicted = {(model, test): {"Edema": np.full(images, 0.5)} for test in tests}
        run = made_up.finish(predicted, tests=dict.fromkeys(tests, table), **run)
        kept = len(featured_rows(images))
        features = {
            (model, test): rng.normal(size=(kept, 64)).astype(np.float32) + 20 * number
            for number, test in enumerate(tests)
        }
        folder.write_arrays(features, made_up.folder / RUNS / run.key / FEATURES_FILE)
        return run

    return featured


def coloured(axes):
    """Colour -> places of the coloured, shape (n, 2)."""
    lines = axes.get_lines()
    return {line.get_color(): line.get_xydata() for line in lines if len(line.get_xydata())}


@pytest.fixture
def maps(made_up, drawn):
    return lambda: drawn(embedding, made_up.results(), "2", "e").axes


def test_images_are_coloured_by_test_set_and_by_the_class_most_are_positive_for(featured, maps):
    featured(labels={"Edema": [1.0, 0.0, np.nan], "Mass": [0.0, 0.0, 1.0, 0.0, 0.0]})
    by_test, by_class = maps()
    assert legend(by_test) == ["NIH", "MIMIC"] and legend(by_class) == ["no Edema", "Edema"]
    one, other = (coloured(by_test)[colour] for colour in (OF_NIH, OF_MIMIC))
    assert len(one) == len(other) == 30 and len(coloured(by_test)) == 2
    shown = {colour: len(each) for colour, each in coloured(by_class).items()}
    assert shown == {PRESENT: 20, ABSENT: 20}  # without those that are not labelled
    # Images that are alike are close.
    between = np.linalg.norm(one.mean(axis=0) - other.mean(axis=0))
    assert between > 2 * np.linalg.norm(one - one.mean(axis=0), axis=1).mean()


def test_hospitals_of_other_names_have_colours_of_their_own(featured, maps):
    featured(tests=("nih", "north", "south"))
    by_test, _ = maps()
    assert legend(by_test) == ["NIH", "north", "south"]
    assert len(coloured(by_test)) == 3 and OF_NIH in coloured(by_test)


def test_the_model_is_a_global_one_of_the_first_seed_with_batch_norm_frozen(featured, made_up):
    featured(strategy="fedavg", scenario="2")
    assert "surgical-fedavg, seed 0" in embedding(made_up.results(), "2", "e")
    featured(scenario="2", seed=1)
    featured(scenario="2", seed=0)
    featured(scenario="2", method="vanilla")
    svg, again = (embedding(made_up.results(), "2", "e") for _ in range(2))
    assert "surgical-fedbn+, seed 0" in svg and svg == again


def test_many_images_are_thinned_out_evenly_with_their_own_labels(featured, made_up):
    images = 2 * FEATURES_OF
    run = featured(images, labels={"Edema": np.arange(images) % 3 == 0})
    found, features = module._images(made_up.results(), run)
    assert found["test"].value_counts().to_dict() == {"nih": MOST // 2, "mimic": MOST // 2}
    kept = featured_rows(images)
    chosen = np.linspace(0, len(kept) - 1, MOST // 2).round().astype(int)
    np.testing.assert_array_equal(found["Edema"][: MOST // 2], kept[chosen] % 3 == 0)
    every = folder.read_array(made_up.folder / RUNS / run.key / FEATURES_FILE, "global", "mimic")
    np.testing.assert_array_equal(features[MOST // 2 :], every[chosen])


def test_there_is_nothing_to_draw_without_a_global_model_or_with_few_images(featured, made_up):
    featured(model="nih", scenario="2", strategy="fedbn")
    featured(method="vanilla", scenario="2")
    featured(images=FEWEST // 2 - 1, scenario="4")
    featured(images=FEWEST // 2, scenario="8")
    drawn = [embedding(made_up.results(), scenario, "e") is not None for scenario in "248"]
    assert drawn == [False, False, True]
