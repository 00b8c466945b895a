"""How well models do on the sites' test splits, class by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cxr_study.common import progress
from cxr_study.data.labels import label_policy
from cxr_study.data.labels.label_table import classes as class_columns
from cxr_study.data.sites.site_data import SiteLabels, load_images, load_labels
from cxr_study.data.sites.site_file import SiteFile, SiteFileError, read_site_file
from cxr_study.evaluation.bootstrap import bootstrap_auroc, mean_defined
from cxr_study.evaluation.summary import ClassAuroc, Group, MeanAuroc, Model
from surgical_aggregation.aggregation.metrics import auroc
from surgical_aggregation.checkpoints.checkpoint import Checkpoint
from surgical_aggregation.wire import variables as wire

if TYPE_CHECKING:  # TensorFlow must not start before its threads are set
    from surgical_aggregation.site.training.keras_model import LocalModel


@dataclass(frozen=True)
class Network:
    """Which network a checkpoint's variables belong to; see `model.build`."""

    backbone: str
    image_size: int
    hidden: int


@dataclass(frozen=True, eq=False)
class TestSplit:
    """A site's test images with all that is known of them.

    Attributes:
        site: Name of the site.
        table: Label table of all the site's images, with their splits.
        pixels: uint8 (n, size, size), the test images.
        patients: Patient of each test image.
        labels: float (n, classes of the union); NaN where nobody knows.
        held: Classes that the site labels itself; the labels of the others are the truth's.
    """

    __test__ = False  # not a test case, whatever pytest makes of its name

    site: str
    table: pd.DataFrame
    pixels: np.ndarray
    patients: np.ndarray
    labels: np.ndarray
    held: frozenset[str]


def load_test_split(site_file: Path, union: Sequence[str], size: int) -> TestSplit:
    """Read a site's test split.

    Args:
        site_file: Its path; the file's name is the site's.
        union: Classes of the columns of `labels`.
        size: Side of the images, pixels.

    Raises:
        ValueError: The site file or what it names is unusable.
    """
    labels, truth = read_labels(site_file)
    with progress.bar(f"{labels.site.site}: decoding images") as report:
        images = load_images(labels, size, progress=report)
    chosen = np.flatnonzero(images.table["split"] == "test")
    test = images.table.iloc[chosen].reset_index(drop=True)
    held = frozenset(class_columns(test))
    known = label_policy.certain(test.reindex(columns=list(union))).to_numpy(float)
    if truth is not None:
        complete = truth.reindex(test["image"])
        lacked = [i for i, name in enumerate(union) if name not in held]
        known[:, lacked] = complete.reindex(columns=[union[i] for i in lacked]).to_numpy(float)
    return TestSplit(
        labels.site.site,
        images.table,
        images.pixels[images.rows[chosen]],
        test["patient"].to_numpy(),
        known,
        held,
    )


def read_labels(site_file: Path) -> tuple[SiteLabels, pd.DataFrame | None]:
    """Read and check everything that a site file names, images apart.

    Returns:
        The site's labels, and those kept for evaluation only, by image; None where there are none.

    Raises:
        ValueError: The site file or what it names is unusable.
    """
    site = read_site_file(site_file)
    labels = load_labels(site)
    return labels, None if site.truth is None else _read_truth(site, site.truth)


def _read_truth(site: SiteFile, csv: Path) -> pd.DataFrame:
    truth = pd.read_csv(csv, dtype={"image": str})
    if "image" not in truth:
        raise SiteFileError(
            f"{site.path}: key 'truth': {csv} needs a column 'image'; has "
            f"{', '.join(map(str, truth.columns))}."
        )
    truth = truth.set_index("image")
    strange = [str(name) for name in truth if not truth[name].dropna().isin((0, 1)).all()]
    if strange:
        raise SiteFileError(
            f"{site.path}: key 'truth': labels in {csv} need to be 0, 1 or blank; the "
            f"column '{strange[0]}' has others."
        )
    return truth


def predict(checkpoint: Checkpoint, network: Network, pixels: np.ndarray) -> pd.DataFrame:
    """Probabilities of a checkpoint's classes.

    Args:
        checkpoint: Body and columns: a global model, or a site's own.
        network: Its network.
        pixels: uint8 (n, size, size).

    Returns:
        One row per image, one column per class.

    Raises:
        SiteError: The checkpoint does not fit the network.
    """
    from cxr_study.training.input_pipeline import dataset

    local = restored(checkpoint, network)
    nothing = np.zeros((len(pixels), len(local.classes)), np.float32)
    batches = dataset(pixels, nothing, batch_size=256)
    return pd.DataFrame(local.predict(batches).probabilities, columns=list(local.classes))


def restored(checkpoint: Checkpoint, network: Network) -> LocalModel:
    """A checkpoint's network, to predict with.

    Raises:
        SiteError: The checkpoint does not fit the network.
    """
    from cxr_study.training.network import build
    from surgical_aggregation.site.training.keras_model import LocalModel

    body, columns = wire.split(checkpoint.variables)
    held = tuple(columns)
    local = LocalModel(
        build(network.backbone, len(held), image_size=network.image_size, hidden=network.hidden),
        held,
    )
    local.set_body(body)
    local.set_columns(columns)
    return local


def class_aurocs(
    split: TestSplit, probabilities: pd.DataFrame, union: Sequence[str]
) -> dict[str, float | None]:
    """AUROC of one model on one site's test split, class by class.

    Args:
        split: The test split; its labels are of the union's classes.
        probabilities: As `predict` gives them.
        union: All classes.

    Returns:
        Class of the union -> AUROC; None, "not defined", where the model lacks the class or the
        split has no positives or no negatives.
    """
    scored = [i for i, name in enumerate(union) if name in probabilities]
    scores = probabilities[[union[i] for i in scored]].to_numpy(float)
    values = dict(zip(scored, auroc(split.labels[:, scored], scores), strict=True))
    return {name: _or_none(values.get(i, np.nan)) for i, name in enumerate(union)}


def score(
    model: Model, split: TestSplit, probabilities: pd.DataFrame, union: Sequence[str], seed: int
) -> tuple[list[ClassAuroc], list[MeanAuroc]]:
    """AUROC of one model on one site's test split, with 95 % bootstrap intervals by patient.

    Args:
        model: "global" or "own".
        split: The test split.
        probabilities: As `predict` gives them; a class of the union that the model lacks is not
            defined.
        union: All classes.
        seed: Of the bootstrap.

    Returns:
        One row per class, and the means over all classes, those held and those lacked.
    """
    scored = [i for i, name in enumerate(union) if name in probabilities]
    labels = split.labels[:, scored]
    scores = probabilities[[union[i] for i in scored]].to_numpy(float)
    values = class_aurocs(split, probabilities, union)
    interval = bootstrap_auroc(labels, scores, split.patients, seed=seed)
    ends = {i: (interval.low[k], interval.high[k]) for k, i in enumerate(scored)}
    rows = [
        ClassAuroc(
            model=model,
            site=split.site,
            class_name=name,
            held=name in split.held,
            auroc=values[name],
            low=_or_none(ends.get(i, (np.nan, np.nan))[0]),
            high=_or_none(ends.get(i, (np.nan, np.nan))[1]),
            positives=int((split.labels[:, i] == 1).sum()),
            negatives=int((split.labels[:, i] == 0).sum()),
            labels="site" if name in split.held else "truth",
        )
        for i, name in enumerate(union)
    ]
    groups: dict[Group, list[ClassAuroc]] = {
        "all": rows,
        "held": [row for row in rows if row.held],
        "lacked": [row for row in rows if not row.held],
    }
    means = [
        _mean(group, members, model, split, probabilities, union, seed)
        for group, members in groups.items()
        if members
    ]
    return rows, means


def _mean(
    group: Group,
    members: list[ClassAuroc],
    model: Model,
    split: TestSplit,
    probabilities: pd.DataFrame,
    union: Sequence[str],
    seed: int,
) -> MeanAuroc:
    defined = [row.class_name for row in members if row.auroc is not None]
    low = high = np.nan
    if defined:
        index = [list(union).index(name) for name in defined]
        interval = bootstrap_auroc(
            split.labels[:, index],
            probabilities[defined].to_numpy(float),
            split.patients,
            seed=seed,
        )
        low, high = interval.mean_low, interval.mean_high
    return MeanAuroc(
        model=model,
        site=split.site,
        classes=group,
        auroc=_or_none(mean_defined([row.auroc for row in members if row.auroc is not None])),
        low=_or_none(low),
        high=_or_none(high),
        defined=len(defined),
        of=len(members),
    )


def _or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
