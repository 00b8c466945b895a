import re

import pytest

from surgical_aggregation.site.training.training_options import TrainingOptions


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("class_weighting", "inverse"), ("epochs", 0), ("proximal", -1.0), ("focal_gamma", -0.1),
        ("strategy", "fedprox"), ("freeze_statistics_at", -1),
        ("pseudo_labels", "confident"), ("pseudo_labels_from", -1),
    ],
)  # fmt: skip
def test_what_is_not_usable_is_refused_by_name(option, value):
    with pytest.raises(ValueError, match=option):
        TrainingOptions(**{option: value})


@pytest.mark.parametrize("strategy", ["fedbn", "fedbn+"])
def test_statistics_that_the_sites_do_not_share_are_not_frozen_in_a_round(strategy):
    with pytest.raises(ValueError, match=rf"'fedavg' alone trains; got '{re.escape(strategy)}'"):
        TrainingOptions(strategy=strategy, freeze_statistics_at=8)


def test_a_whole_number_is_a_rate_too():
    """Keras refuses an optimizer with the rate 1, which is how a configuration may spell 1.0."""
    options = TrainingOptions(learning_rate=1, warmup_learning_rate=2)
    assert {type(options.learning_rate), type(options.warmup_learning_rate)} == {float}
