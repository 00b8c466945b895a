"""Settings that go together: the papers' recipes, and one for real images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cxr_study.common.spelling import nearest
from cxr_study.jobs.command_line_settings import JobError, Settings


@dataclass(frozen=True)
class Preset:
    """Values of some settings, and site -> setting -> value where such a site takes part."""

    settings: Settings
    per_site: Mapping[str, Settings] = field(default_factory=dict)


_NETWORK = {"backbone": "densenet121", "image_size": 224, "hidden": 0, "batch_size": 64}

PRESETS: Mapping[str, Preset] = {
    # ML4H 2024 (arXiv:2301.06683).
    "paper": Preset(
        {
            **_NETWORK,
            "augmentation": "paper",
            "epochs": 1,
            "learning_rate": 5e-5,
            "warmup_epochs": 15,
            "warmup_learning_rate": 5e-3,
            "num_rounds": 150,
            "patience": 25,
        },
    ),
    # FedFBN (arXiv:2303.06180): a rate of its own at site chexpert.
    "paper-fedfbn": Preset(
        {
            **_NETWORK,
            "augmentation": "paper",
            "epochs": 1,
            "learning_rate": 1e-5,
            "warmup_epochs": 15,  # not said there; as in the other paper
            "warmup_learning_rate": 1e-3,
            "num_rounds": 100,
            "patience": 0,
        },
        {"chexpert": {"learning_rate": 5e-5}},
    ),
    # Real images, without flips or strong distortions.
    # Fine-tuning an ImageNet DenseNet121 on chest X-rays peaks within a few passes, so: CheXpert's
    # own rate of 1e-4 (Irvin et al., AAAI 2019), a head warmed up to the point where it stops
    # moving, and an end five rounds after the best one.
    "radiology": Preset(
        {
            **_NETWORK,
            "augmentation": "radiology",
            "epochs": 1,
            "learning_rate": 1e-4,
            "warmup_epochs": 5,
            "warmup_learning_rate": 1e-3,
            "gradient_clip": 1.0,
            "num_rounds": 40,
            "patience": 5,
        },
    ),
}
"""Name -> preset. All need an initial body of DenseNet121 (`surgagg model init`)."""


def apply(
    name: str | None,
    settings: Settings,
    per_site: Mapping[str, Settings],
    sites: Sequence[str],
) -> tuple[dict[str, object], dict[str, dict[str, object]]]:
    """Put a preset under explicit settings, which win.

    Args:
        name: Of the preset; None: none.
        settings: Setting -> value; wins over the preset's, also over those of a single site.
        per_site: Site -> setting -> value; wins over all.
        sites: Names of the sites that take part.

    Returns:
        Settings and per-site settings for `job_folder.copy`.

    Raises:
        JobError: There is no such preset.
    """
    if name is not None and name not in PRESETS:
        raise JobError(f"there is no preset {name!r}; {nearest(name, tuple(PRESETS))}.")
    preset = PRESETS[name] if name else Preset({})
    merged = {site: dict(values) for site, values in per_site.items()}
    for site, values in preset.per_site.items():
        under = {name: value for name, value in values.items() if name not in settings}
        if site in sites and under:
            merged[site] = {**under, **merged.get(site, {})}
    return {**preset.settings, **settings}, merged
