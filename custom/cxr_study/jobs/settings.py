"""Knobs as they are written on a command line."""

from __future__ import annotations

import json
from collections.abc import Sequence

from cxr_study.jobs.job_settings import JobError


def parse(items: Sequence[str]) -> tuple[dict[str, object], dict[str, dict[str, object]]]:
    """Read KNOB=VALUE for all sites, SITE:KNOB=VALUE for one of them.

    Args:
        items: As given; of two for the same knob the later one counts. A value is JSON where it can
            be read as such, else a text.

    Returns:
        Knob -> value, and site -> knob -> value.

    Raises:
        JobError: An item lacks its "=" or a name.

    Example:
        >>> parse(["num_rounds=20", "nih:learning_rate=1e-5", "backbone=densenet121"])
        ({'num_rounds': 20, 'backbone': 'densenet121'}, {'nih': {'learning_rate': 1e-05}})
    """
    settings: dict[str, object] = {}
    per_site: dict[str, dict[str, object]] = {}
    for item in items:
        name, separator, text = item.partition("=")
        site, colon, knob = name.rpartition(":")
        if not separator or not knob or (colon and not site):
            raise JobError(
                f"--set needs KNOB=VALUE, e.g. num_rounds=20, or SITE:KNOB=VALUE; got {item!r}."
            )
        (per_site.setdefault(site, {}) if colon else settings)[knob] = _value(text)
    return settings, per_site


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
