"""Settings from a command line, and presets: named groups of settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cxr_study.common.spelling import nearest

__all__ = ["PRESETS"]

Settings = Mapping[str, object]
"""Setting -> value."""


class JobError(ValueError):
    """A job, a job folder, a setting, a preset or the name of a site is not usable."""


def parse(items: Sequence[str]) -> tuple[dict[str, object], dict[str, dict[str, object]]]:
    """Parse settings of the form NAME=VALUE or, for one site, SITE:NAME=VALUE.

    A value that is valid JSON becomes its value (20, true, 1e-5), any other stays a text. Of two
    values for the same setting the later one applies.

    Returns:
        Setting -> value for all sites, and site -> setting -> value.

    Raises:
        JobError: An item has no "=", or no name before it.

    Example:
        >>> parse(["num_rounds=20", "nih:learning_rate=1e-5", "backbone=densenet121"])
        ({'num_rounds': 20, 'backbone': 'densenet121'}, {'nih': {'learning_rate': 1e-05}})
    """
    settings: dict[str, object] = {}
    per_site: dict[str, dict[str, object]] = {}
    for item in items:
        key, separator, text = item.partition("=")
        site, colon, name = key.rpartition(":")
        if not separator or not name or (colon and not site):
            raise JobError(
                f"--set needs NAME=VALUE, e.g. num_rounds=20, or SITE:NAME=VALUE; got {item!r}."
            )
        (per_site.setdefault(site, {}) if colon else settings)[name] = _value(text)
    return settings, per_site


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


@dataclass(frozen=True)
class Preset:
    """Values of some settings.

    Attributes:
        settings: Setting -> value, for all sites.
        per_site: Site -> setting -> value; applies if a site of this name is in the job.
    """

    settings: Settings
    per_site: Mapping[str, Settings] = field(default_factory=dict)


_NETWORK = {
    "backbone": "densenet121", "image_size": 224, "hidden": 0, "batch_size": 64, "epochs": 1,
}  # fmt: skip
_PAPERS = {**_NETWORK, "augmentation": "paper", "warmup_epochs": 15}
_ML4H = {**_PAPERS, "learning_rate": 5e-5, "warmup_learning_rate": 5e-3, "num_rounds": 150}

PRESETS: Mapping[str, Preset] = {
    # The method alone, not the network or the recipe: as published, with two more candidates for
    # the best model, which cost next to nothing.
    "recommended": Preset({"strategy": "fedbn+", "average_decay": 0.9, "refit_model": "best"}),
    # ML4H 2024 (arXiv:2301.06683), section 2.5, has all (the head: 2.1) but the ranges of the
    # augmentation, which are the released code's, and names no early stopping.
    "paper": Preset({**_ML4H, "patience": 0}),
    # Version 1, Methods, "Deep Learning Setups": network, pixels, rate, batch, epochs, patience;
    # "Experimental setup": NIH's own rate next to CheXpert. Warm-up and augmentation without
    # numbers: ML4H's.
    "paper-version1": Preset({**_ML4H, "patience": 25}, {"nih": {"learning_rate": 1e-5}}),
    # FedFBN (arXiv:2303.06180), section 2.3: network, pixels, rates, batch, epochs, no early
    # stopping; 2.4: two rates; version 1 names the site of each. Length of the warm-up and
    # augmentation: ML4H's.
    "paper-fedfbn": Preset(
        {
            **_PAPERS,
            "learning_rate": 1e-5,
            "warmup_learning_rate": 1e-3,
            "num_rounds": 100,
            "patience": 0,
        },
        {"chexpert": {"learning_rate": 5e-5}},
    ),
    # Real images, without flips or strong distortions.
    # CheXpert's own rate of 1e-4 (Irvin et al., AAAI 2019), and a head that is warmed up until it
    # stops changing. Early stopping is late: after four rounds it costs a federation more than a
    # site alone (docs/explanation/results.md, "Without early stopping").
    "radiology": Preset(
        {
            **_NETWORK,
            "augmentation": "radiology",
            "learning_rate": 1e-4,
            "warmup_epochs": 5,
            "warmup_learning_rate": 1e-3,
            "gradient_clip": 1.0,
            "num_rounds": 40,
            "patience": 16,
        }
    ),
}
"""Name -> preset. All but "recommended" need an initial body of DenseNet121 (`surgagg model
init`)."""


def with_preset(
    names: str | None, settings: Settings, per_site: Mapping[str, Settings], sites: Sequence[str]
) -> tuple[dict[str, object], dict[str, dict[str, object]]]:
    """Complete explicit settings with those of presets.

    A value for one site wins over one for all sites. Explicit values win over those of presets,
    also an explicit value for all sites over a preset's for one site.

    Args:
        names: Names of presets, separated by commas. None: none.
        settings: Setting -> value, explicit, for all sites.
        per_site: Site -> setting -> value, explicit.
        sites: Names of the sites in the job.

    Returns:
        Setting -> value for all sites, and site -> setting -> value.

    Raises:
        JobError: There is no such preset, or two of them give a setting different values.
    """
    preset = _combined(names)
    merged = {site: dict(values) for site, values in per_site.items()}
    for site, values in preset.per_site.items():
        under = {name: value for name, value in values.items() if name not in settings}
        if site in sites and under:
            merged[site] = {**under, **merged.get(site, {})}
    return {**preset.settings, **settings}, merged


def _combined(names: str | None) -> Preset:
    """Combine the presets with these names, separated by commas."""
    settings: dict[str, object] = {}
    per_site: dict[str, Settings] = {}
    whose: dict[str, str] = {}
    for name in filter(None, (names or "").split(",")):
        if name not in PRESETS:
            raise JobError(f"there is no preset {name!r}; {nearest(name, tuple(PRESETS))}.")
        for setting, value in PRESETS[name].settings.items():
            if settings.setdefault(setting, value) != value:
                raise JobError(
                    f"presets {whose[setting]!r} and {name!r} cannot be combined: {setting} is "
                    f"{settings[setting]} in one and {value} in the other. Use one preset, and "
                    "--set for the rest."
                )
            whose.setdefault(setting, name)
        per_site |= PRESETS[name].per_site
    return Preset(settings, per_site)


def preset_of(settings: Settings, given: str | None = None) -> str:
    """Describe which presets a job's settings follow, and where they differ.

    Args:
        settings: All settings of the job.
        given: Names of the presets that were requested, separated by commas. Default: those whose
            values the settings all have.

    Returns:
        Such as "radiology and recommended, but num_rounds = 20", or "none".
    """
    names = given or ",".join(name for name in PRESETS if not _changed(_combined(name), settings))
    if not names or not set(names.split(",")) <= PRESETS.keys():
        return "none"
    presets = names.replace(",", " and ")
    changed = _changed(_combined(names), settings)
    return f"{presets}, but {', '.join(changed)}" if changed else presets


def _changed(preset: Preset, settings: Settings) -> list[str]:
    """Settings that have another value than in a preset, as "name = value"."""
    return [
        f"{name} = {settings.get(name)}"
        for name, value in preset.settings.items()
        if settings.get(name) != value
    ]
