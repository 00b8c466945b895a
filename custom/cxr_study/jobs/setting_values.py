"""Whether the values of a job's knobs can be used, before anything is made of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields

from cxr_study.training.augmentation import amplitudes
from cxr_study.training.network import BACKBONES
from surgical_aggregation.aggregation import server_optimizer, strategy, weighting
from surgical_aggregation.site.training.training_options import SENT, TrainingOptions
from surgical_aggregation.wire.headers import NONE, TRACKERS

LEAST = {
    "num_rounds": 0,
    "patience": 0,
    "min_clients": 1,
    "wait_seconds": 0,
    "site_silence": 1,
    "image_size": 8,
    "hidden": 0,
    "batch_size": 1,
    "seed": 0,
    "threads": 0,
}
"""Knob -> smallest value."""


WORDS = {"backbone": BACKBONES, "send": SENT, "tracking": (*TRACKERS, NONE)}
"""Knob -> its values."""


class KnobValueError(ValueError):
    """A knob has a value that no run could use."""


def check(knobs: Mapping[str, object]) -> None:
    """Refuse what a server or a site would refuse, or stumble over, after the start.

    Args:
        knobs: Knob -> value; of other knobs than the methods' nothing is known.

    Raises:
        ValueError: A value is unknown or out of range, or does not go with another.
    """
    for name, least in LEAST.items():
        value = knobs.get(name, least)
        if isinstance(value, int) and value < least:
            raise KnobValueError(f"knob {name!r} must be {least} or more; got {value}.")
    for name, number in knobs.items():
        if isinstance(number, float) and not math.isfinite(number):
            raise KnobValueError(f"knob {name!r} must be a finite number; got {number}.")
    for name, values in WORDS.items():
        if knobs.get(name, values[0]) not in values:
            raise KnobValueError(f"knob {name!r} must be one of {values}; got {knobs[name]!r}.")
    if "strategy" not in knobs:
        return  # a job that trains nothing
    if knobs.get("num_rounds") == 0 and not knobs.get("continues"):
        raise KnobValueError(
            "knob 'num_rounds' must be 1 or more, or 0 in a job that makes up for the rounds that "
            "an earlier one has not made; got 0. Set continues=<the earlier job's id> as well."
        )
    strategy.check(str(knobs["strategy"]))
    given = {
        field.name: knobs[field.name] for field in fields(TrainingOptions) if field.name in knobs
    }
    TrainingOptions(**given)  # type: ignore[arg-type]
    amplitudes(str(knobs["augmentation"]))
    if "server_optimizer" in knobs:
        server_optimizer.check(
            str(knobs["server_optimizer"]),
            float(str(knobs["server_learning_rate"])),
            float(str(knobs["server_momentum"])),
        )
    _check_weightings(knobs)


def _check_weightings(knobs: Mapping[str, object]) -> None:
    shared = "union" in knobs  # every site has every column, most of them without a positive
    heads = weighting.BODY_WEIGHTINGS if shared else weighting.HEAD_WEIGHTINGS
    known = {
        "weighting": weighting.BODY_WEIGHTINGS,
        "body_weighting": weighting.BODY_WEIGHTINGS,
        "head_weighting": heads,
    }
    for name, values in known.items():
        weighting.check(name, str(knobs.get(name, "mean")), values)
    if knobs.get("head_weighting") == "positives" and not knobs["report_counts"]:
        raise KnobValueError(
            "head_weighting 'positives' needs the sites' counts; set report_counts=true as well."
        )
