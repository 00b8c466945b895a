import pytest

from surgical_aggregation.aggregation.strategy import StrategyError
from surgical_aggregation.site.training.training_options import (
    TrainingOptions,
    TrainingOptionsError,
)


@pytest.mark.parametrize(
    ("option", "value"),
    [("class_weighting", "inverse"), ("epochs", 0), ("proximal", -1.0), ("focal_gamma", -0.1)],
)
def test_what_is_not_usable_is_refused_by_name(option, value):
    with pytest.raises(TrainingOptionsError, match=option):
        TrainingOptions(**{option: value})


def test_an_unknown_strategy_is_refused():
    with pytest.raises(StrategyError):
        TrainingOptions(strategy="fedprox")


def test_a_whole_number_is_a_rate_too():
    """Keras refuses an optimizer with the rate 1, which is how a configuration may spell 1.0."""
    options = TrainingOptions(learning_rate=1, warmup_learning_rate=2)
    assert isinstance(options.learning_rate, float)
    assert isinstance(options.warmup_learning_rate, float)
