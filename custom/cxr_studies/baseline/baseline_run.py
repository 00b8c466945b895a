"""Baselines without a federation: a site alone, and all sites' data in one place."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cxr_study.common.spelling import nearest
from cxr_study.jobs.job import check_known
from cxr_study.jobs.methods import METHODS as FEDERATED
from cxr_study.jobs.presets import JobError, Settings
from surgical_aggregation.site.training.training_options import TrainingOptions

METHODS = MappingProxyType(
    {"individual": "surgical", "centralised": "vanilla", "centralised-partial": "partial_loss"}
)
"""Method -> the federated method whose job has the same labels, and whose recipe is used."""

SETTINGS = (
    "backbone", "image_size", "hidden", "union", "strategy", "batch_size", "augmentation", "epochs",
    "learning_rate", "warmup_epochs", "warmup_learning_rate", "gradient_clip", "class_weighting",
    "focal_gamma", "mixed_precision", "seed", "threads", "num_rounds", "patience", "average_decay",
    "refit_model",
)  # fmt: skip
"""Settings of a job that also apply without a federation."""


@dataclass(frozen=True)
class BaselineRun:
    """A training without a federation.

    Attributes:
        method: One of `METHODS`.
        sites: Names of the sites whose data are used; one with "individual".
        settings: Setting -> value; see `all_settings`.
        out: Folder for the files that `train_alone` writes.
        site_files: Folder of <site>.yaml; None: the phantom.
        initial_body: Checkpoint to start from; None: the phantom's.
    """

    method: str
    sites: tuple[str, ...]
    settings: Mapping[str, Any]
    out: Path
    site_files: Path | None = None
    initial_body: Path | None = None


def all_settings(method: str, settings: Settings) -> dict[str, Any]:
    """All settings of a training without a federation.

    Defaults are those of the federated job of the same recipe.

    Args:
        method: One of `METHODS`.
        settings: Setting -> value, of those that are changed.

    Returns:
        Setting -> value, checked and of the right type, for the names of `SETTINGS`.

    Raises:
        JobError: There is no such method or setting, a value is of another type or out of range, or
            the strategy needs a federation.
    """
    if method not in METHODS:
        raise JobError(
            f"without a federation there is no method {method!r}; "
            f"{nearest(method, tuple(METHODS))}."
        )
    from cxr_study.jobs.settings import checked, defaults

    federated = defaults(METHODS[method])
    own = {name: federated[name] for name in SETTINGS if name in federated}
    check_known(settings, own, f"{method} training")
    if settings.get("strategy") == "fedbn":
        raise JobError(
            "without a federation the strategy must be fedavg, fedbn+ or fixbn; fedbn differs from "
            "fedavg only in what a site does not send. Use fedavg."
        )
    typed = checked({**own, **settings})
    if not typed.num_rounds:
        raise JobError("without a federation 'num_rounds' must be 1 or more; got 0.")
    return {name: getattr(typed, name) for name in own}


def train(
    run: BaselineRun, progress: Callable[[int, int], None] = lambda done, total: None
) -> None:
    """Train in this process; see `without_federation.train_alone`.

    Sets TensorFlow up, so it must come before the process's first TensorFlow operation, or after
    another run with as many threads.

    Args:
        run: What to train.
        progress: Called as progress(rounds made, rounds).

    Raises:
        ValueError: A site, its data, the initial checkpoint or a setting is unusable.
    """
    from cxr_studies.baseline.pooled_site import PooledSite
    from cxr_studies.baseline.without_federation import train_alone  # imports FLARE
    from cxr_study.common.offered_data import drawings
    from cxr_study.training.chest_xray_site import ChestXraySite
    from surgical_aggregation.checkpoints.checkpoint import load
    from surgical_aggregation.site.training import tensorflow_setup

    values = dict(run.settings)
    threads = values["threads"] or tensorflow_setup.cores()
    tensorflow_setup.configure(threads, values["seed"], values["mixed_precision"])
    network = ("backbone", "image_size", "hidden", "batch_size", "augmentation", "seed")
    sites = {
        name: ChestXraySite(
            name,
            None if run.site_files is None else str(run.site_files),
            other_classes=FEDERATED[METHODS[run.method]].other_classes,
            union=values.get("union", ""),
            **{key: values[key] for key in network},
        )
        for name in run.sites
    }
    options = [field.name for field in dataclasses.fields(TrainingOptions) if field.name in values]
    train_alone(
        PooledSite(tuple(sites.values())),
        TrainingOptions(**{name: values[name] for name in options}),
        load(run.initial_body or drawings()),
        measured_at=sites,
        rounds=values["num_rounds"],
        **{name: values[name] for name in ("patience", "average_decay", "refit_model")},
        out=run.out,
        facts={"method": run.method, "strategy": values["strategy"]},
        progress=progress,
    )
