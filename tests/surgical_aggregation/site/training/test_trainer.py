import numpy as np
import pytest

from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.training.local_model import LocalModel
from surgical_aggregation.site.training.trainer import LocalTraining
from surgical_aggregation.site.training.training_options import TrainingOptions
from surgical_aggregation.wire import variables as wire
from tiny_site import FEATURES

COLUMN = (np.ones(FEATURES, np.float32), np.ones(1, np.float32))


@pytest.fixture
def training(tiny):
    return lambda **options: LocalTraining(tiny("Edema", "Mass"), TrainingOptions(**options))


def model(training):
    return wire.split(training.labelled_variables())


def same(one, other):
    return all(value.tobytes() == other[name].tobytes() for name, value in one.items())


@pytest.mark.parametrize("options", [{}, {"strategy": "fixbn", "proximal": 0.1}], ids=str)
def test_passes_go_on_where_an_earlier_process_stopped(training, options):
    """Two rounds of two passes, in one process and in two."""
    options = {"epochs": 2, "learning_rate": 0.05, **options}
    straight, continued, again = (training(**options) for _ in range(3))
    again.model.assign(straight.variables())
    straight.train(0)
    middle, state = straight.variables(), straight.state()
    assert int(state["passes"]) == 2
    straight.train(1)
    continued.restore(state)
    continued.model.assign(middle)
    continued.train(1)
    assert same(straight.variables(), continued.variables())
    again.model.set_training_state({n: v for n, v in state.items() if n != "passes"})
    again.train(1)  # the first two passes, not the next: another order of images
    assert not same(again.variables(), middle)


def test_personal_variables_of_another_round_can_be_looked_at_without_losing_the_present(training):
    site = training(strategy="fedbn")
    body, labelled = model(site)
    site.train(0)
    present = site.variables()["bn/beta"]
    site.receive(body, labelled, {"bn/beta": np.full(FEATURES, 9, np.float32)})
    assert (site.variables()["bn/beta"] == 9).all()
    site.receive(body, labelled)
    np.testing.assert_array_equal(site.variables()["bn/beta"], present)


@pytest.mark.parametrize(("state", "reason"), [
    ({"personal/dense/kernel": np.zeros(1)}, "of another model or strategy"),
    ({"optimizer/0": np.zeros(9)}, "of another model, or of other classes"),
])  # fmt: skip
def test_the_state_of_another_model_or_strategy_is_refused(training, state, reason):
    site = training(strategy="fedbn")
    with pytest.raises(SiteError, match=reason):
        site.restore({**site.state(), **state, "passes": np.array(3)})
    assert site.passes == 0 and site.personal is None


def test_balanced_classes_train_another_model(training):
    trained = []
    for weighting in ("none", "balanced"):
        site = training(class_weighting=weighting)
        site.model.assign({name: v * 0 + 0.1 for name, v in site.variables().items()})
        site.train(0)
        trained.append(site.variables()["head/bias"])
    assert not np.array_equal(*trained)


def test_differences_are_from_what_was_received_and_from_zeros_where_nothing_was(training):
    site = training()
    body, _ = model(site)
    site.receive(body, {"Mass": COLUMN})
    found, own = site.differences(body, {"Mass": COLUMN}), site.variables()
    assert found.keys() == own.keys()
    assert not any(np.any(value) for path, value in found.items() if path in body)
    expected = own["head/kernel"] * [1, 0]  # the second class is the one that was received
    np.testing.assert_array_equal(found["head/kernel"], expected)


def test_pseudo_labels_are_of_classes_without_a_label_from_the_round_asked_for(tiny, monkeypatch):
    asked = []

    def train(model, data, stop, *, pseudo_labels):
        asked.append((model._taught.missing, pseudo_labels))

    tiny_site = tiny("Edema", "Mass", "Hernia")
    labels = np.zeros((20, 3), np.float32)
    labels[:, 1], labels[3:, 2] = np.nan, np.nan
    monkeypatch.setattr(type(tiny_site), "training_labels", labels)
    with pytest.raises(SiteError, match="no training image has a label of Mass: leave it out"):
        LocalTraining(tiny_site, TrainingOptions())
    tiny_site.union_head = True  # which has classes that the site does not label
    monkeypatch.setattr(LocalModel, "train", train)
    site = LocalTraining(tiny_site, TrainingOptions(pseudo_labels="soft", pseudo_labels_from=2))
    for round_ in (1, 2):
        site.train(round_)
    assert asked == [((False, True, False), False), ((False, True, False), True)]
    assert site.lacking == {"Edema": "positive", "Mass": "labelled", "Hernia": "positive"}


@pytest.mark.parametrize(("option", "value"), [
    ("class_weighting", "inverse"), ("epochs", 0), ("proximal", -1.0), ("focal_gamma", -0.1),
    ("strategy", "fedprox"), ("pseudo_labels", "confident"), ("pseudo_labels_from", -1),
])  # fmt: skip
def test_what_is_not_usable_is_refused_by_name(option, value):
    with pytest.raises(ValueError, match=option):
        TrainingOptions(**{option: value})


def test_a_whole_number_is_a_rate_too():
    """Keras refuses an optimizer with the rate 1, which is how a configuration may spell 1.0."""
    options = TrainingOptions(learning_rate=1, warmup_learning_rate=2)
    assert {type(options.learning_rate), type(options.warmup_learning_rate)} == {float}
