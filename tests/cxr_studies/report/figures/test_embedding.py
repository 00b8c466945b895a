import numpy as np
import pytest

import study_runs
from cxr_studies.plan.run_folder import RUNS
from cxr_studies.report.figures import embedding as module
from cxr_studies.report.figures.embedding import FEWEST, MOST, embedding
from cxr_studies.runner import prediction_files
from drawn_texts import legend

NIH, MIMIC = (module._TESTS[test][0] for test in ("nih", "mimic"))
PRESENT, ABSENT = module._PRESENT[0], module._ABSENT[0]


@pytest.fixture
def finish(made_up):
    """Finishes a run with features, which are a cluster for each test set."""

    def finish(images=30, tests=("nih", "mimic"), labels=None, model="global", **run):
        rng = np.random.default_rng(0)
        chosen = labels or {"Edema": [1.0, 0.0]}
        table = study_runs.table({c: np.resize(values, images) for c, values in chosen.items()})
        predicted = {(model, test): {"Edema": np.full(images, 0.5)} for test in tests}
        run = made_up.finish(predicted, tests=dict.fromkeys(tests, table), **run)
        kept = len(prediction_files.featured_rows(images))
        features = {
            f"{model}/{test}": rng.normal(size=(kept, 64)).astype(np.float32) + 20 * number
            for number, test in enumerate(tests)
        }
        np.savez(made_up.folder / RUNS / run.key / prediction_files.FEATURES_FILE, **features)
        return run

    return finish


def points(axes):
    """Colour -> places of the points, shape (n, 2)."""
    lines = axes.get_lines()
    return {line.get_color(): line.get_xydata() for line in lines if len(line.get_xydata())}


@pytest.fixture
def panels(made_up, drawn):
    return lambda: drawn(embedding, made_up.results(), "2", "e").axes


def test_images_are_coloured_by_test_set_and_by_the_class_most_are_positive_for(finish, panels):
    finish(labels={"Edema": [1.0, 0.0, np.nan], "Mass": [0.0, 0.0, 1.0, 0.0, 0.0]})
    by_test, by_class = panels()
    assert legend(by_test) == ["NIH", "MIMIC"] and legend(by_class) == ["no Edema", "Edema"]
    assert {colour: len(each) for colour, each in points(by_test).items()} == {NIH: 30, MIMIC: 30}
    shown = {colour: len(each) for colour, each in points(by_class).items()}
    assert shown == {PRESENT: 20, ABSENT: 20}  # without those that are not labelled
    one, other = points(by_test)[NIH], points(by_test)[MIMIC]  # images that are alike are close
    between = np.linalg.norm(one.mean(axis=0) - other.mean(axis=0))
    assert between > 2 * np.linalg.norm(one - one.mean(axis=0), axis=1).mean()


def test_the_model_is_a_global_one_of_the_first_seed_with_batch_norm_frozen(finish, made_up):
    finish(strategy="fedavg", scenario="2")
    assert "surgical-fedavg, seed 0" in embedding(made_up.results(), "2", "e")
    finish(scenario="2", seed=1)
    finish(scenario="2", seed=0)
    finish(scenario="2", method="vanilla")
    svg, again = (embedding(made_up.results(), "2", "e") for _ in range(2))
    assert "surgical-fedbn+, seed 0" in svg and svg == again


def test_many_images_are_thinned_out_evenly_with_their_own_labels(finish, made_up):
    images = 2 * prediction_files.FEATURES_OF
    run = finish(images, labels={"Edema": np.arange(images) % 3 == 0})
    found, features = module._images(made_up.results(), run)
    assert found["test"].value_counts().to_dict() == {"nih": MOST // 2, "mimic": MOST // 2}
    kept = prediction_files.featured_rows(images)
    chosen = np.linspace(0, len(kept) - 1, MOST // 2).round().astype(int)
    np.testing.assert_array_equal(found["Edema"][: MOST // 2], kept[chosen] % 3 == 0)
    every = prediction_files.read_features(made_up.folder / RUNS / run.key, "global", "mimic")
    np.testing.assert_array_equal(features[MOST // 2 :], every[chosen])


def test_there_is_nothing_to_draw_without_a_global_model_or_with_few_images(finish, made_up):
    finish(model="nih", scenario="2", strategy="fedbn")
    finish(method="vanilla", scenario="2")
    finish(images=FEWEST // 2 - 1, scenario="4")
    finish(images=FEWEST // 2, scenario="8")
    drawn = [embedding(made_up.results(), scenario, "e") is not None for scenario in "248"]
    assert drawn == [False, False, True]
