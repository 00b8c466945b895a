"""A hospital's own model, a checkpoint or a Keras file, that gets classes of another.

By column, or fitted anew on its own labelled images.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cxr_study.evaluation.predictions import Predictions
from cxr_study.models import export_model
from cxr_study.models.loaded_model import LoadedModel
from cxr_study.training.network import network_of, with_head
from surgical_aggregation.aggregation.metrics import auroc
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load, save
from surgical_aggregation.checkpoints.manifest import Manifest
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.training.column_refit import FeatureSplit, best_refit
from surgical_aggregation.site.training.tensorflow_setup import import_quietly
from surgical_aggregation.wire import variables as wire

if TYPE_CHECKING:
    import keras

FEWEST = 20
"""Positive, and negative, training images that a column is fitted on, at least."""


@dataclass(frozen=True, eq=False)
class OwnModel:
    """A model that gets classes.

    Attributes:
        checkpoint: Its variables, and what is known of it.
        file: Where it was read.
        classes: Names of its outputs, in order.
        graph: The Keras model of a Keras file; None: it was a checkpoint.
        takes_pixels: Whether the graph resizes and normalises by itself: it was exported here.
        facts: A Keras file's own; see `export_model.metadata`.
    """

    checkpoint: Checkpoint
    file: Path
    classes: tuple[str, ...]
    graph: keras.Model | None = None
    takes_pixels: bool = False
    facts: dict[str, Any] | None = None


def read(path: Path, own_classes: Sequence[str] = ()) -> OwnModel:
    """Read a model.

    A Keras file is one that `surgagg export` wrote, which has the classes' names, or any network
    whose last layer is a Dense called "head" with a sigmoid.

    Args:
        path: A checkpoint, or a file .keras.
        own_classes: Names of a Keras file's outputs, where it does not have them.

    Raises:
        ValueError: The Keras file is not such a network, or its classes are not known.
        CheckpointError: The checkpoint cannot be read.
    """
    if path.suffix != ".keras":
        checkpoint = load(path)
        return OwnModel(checkpoint, path, wire.classes_of(checkpoint.variables))
    if not path.is_file():
        raise ValueError(f"the model to import into is needed; {path} does not exist.")
    graph = _loaded(path)
    facts = export_model.read_metadata(path)
    names = tuple(facts["classes"]) if facts else tuple(own_classes)
    if not names:
        raise ValueError(
            f"{path} does not say which classes it predicts. Name them in the order of its "
            "outputs: --own-classes Nodule,Mass"
        )
    network = _network(graph)
    from surgical_aggregation.site.contract.architecture import body_variables, head_layer

    try:
        kernel, bias = head_layer(network, names).get_weights()
    except SiteError as error:
        raise ValueError(f"{path}: {error} Rename the layer.") from None
    body = {name: np.asarray(v.numpy()) for name, v in body_variables(network).items()}
    variables = wire.label({**body, "head/kernel": kernel, "head/bias": bias}, names)
    manifest = Manifest({"head_features": len(kernel), **(facts or {}).get("network", {})})
    own = Checkpoint(variables, manifest)
    return OwnModel(own, path, names, graph, _takes_pixels(graph), facts)


def write(model: OwnModel, checkpoint: Checkpoint, out: Path) -> None:
    """Write a model with the columns of a checkpoint, which has its body, in the form it had.

    In a Keras file its own classes keep their order, and the new ones follow. See `check` first.
    """
    if model.graph is None:
        save(checkpoint, out)
        return
    _, columns = wire.split(checkpoint.variables)
    names = [*model.classes, *(name for name in columns if name not in model.classes)]
    grown = with_head(_network(model.graph), len(names))
    grown.layers[-1].set_weights(
        [
            np.stack([columns[name][0] for name in names], axis=1),
            np.concatenate([columns[name][1] for name in names]),
        ]
    )
    if model.takes_pixels:
        from cxr_study.models.pixel_graph import behind_pixels

        grown = behind_pixels(grown, network_of(checkpoint).normalisation)
    origin = {
        name: facts["imported"]
        for name, facts in checkpoint.manifest.get("classes", {}).items()
        if "imported" in facts
    }
    facts = {**(model.facts or {}), "classes": names, "imported": origin}
    export_model.write_network(grown, "keras", out, facts)


def loaded(model: OwnModel) -> LoadedModel:
    """A model to predict with.

    Raises:
        ValueError: It is a Keras file that does not resize and normalise by itself, so that
            nobody knows what its images must be.
        CheckpointError: The checkpoint does not say which network it is.
    """
    if model.graph is not None and not model.takes_pixels:
        raise ValueError(
            f"{model.file} does not say how its images are made; only a checkpoint, or a file that "
            "surgagg export wrote, can be predicted with."
        )
    return LoadedModel(model.file, model.checkpoint, network_of(model.checkpoint))


def check(model: OwnModel, out: Path) -> None:
    """Refuse a file that `write` could not write.

    Raises:
        ValueError: It would be another kind of file than the model's.
        FileExistsError: There is such a file.
    """
    suffix = ".npz" if model.graph is None else ".keras"
    if out.suffix != suffix:
        raise ValueError(f"{model.file} becomes a file {suffix}; got {out}.")
    if out.exists():
        raise FileExistsError(f"the model needs a new file; {out} exists. Give another --out.")


def refit(
    train: Predictions, validation: Predictions, classes: Sequence[str]
) -> tuple[wire.Columns, dict[str, dict[str, Any]]]:
    """Fit a column for each class, from zero on, to what the head weighs.

    Args:
        train: Of the site's training split, predicted by the model that gets the classes.
        validation: Of its validation split, by which the penalty is chosen; see `best_refit`.
        classes: Names, which the site labels.

    Returns:
        The columns by class; and by class, for the manifest, "refit": the site, its numbers of
        training images and positive ones, and the AUROC on its validation split (None: not
        defined).

    Raises:
        ValueError: A class has too few positive or negative training images, or no column predicts
            its validation images better than a constant 0.5 does.
    """
    columns: wire.Columns = {}
    facts: dict[str, dict[str, Any]] = {}
    site = train.images.site
    for name in classes:
        to, by = (
            FeatureSplit(split.features, split.images.labels([name]))
            for split in (train, validation)
        )
        counts = [int((to.labels == value).sum()) for value in (1, 0)]
        if min(counts) < FEWEST:
            raise ValueError(
                f"{name} needs {FEWEST} positive and {FEWEST} negative training images at "
                f"{site} to be fitted; there are {counts[0]} and {counts[1]}."
            )
        nothing = np.zeros((to.features.shape[1], 1), np.float32), np.zeros(1, np.float32)
        kernel, bias, penalty = best_refit(to, by, *nothing)
        if penalty is None:
            raise ValueError(
                f"{name} cannot be fitted: no column is better on the labelled validation images "
                f"of {site} than to say 0.5 of each. Are there such images, labelled alike?"
            )
        columns[name] = (kernel[:, 0], bias)
        (score,) = auroc(by.labels, by.features @ kernel + bias)
        made = {"site": site, "images": sum(counts), "positives": counts[0]}
        facts[name] = {"refit": {**made, "auroc": None if np.isnan(score) else float(score)}}
    return columns, facts


def _loaded(path: Path) -> keras.Model:
    import_quietly()
    import keras

    try:
        return keras.saving.load_model(path, compile=False)
    except Exception as error:  # Keras raises many kinds
        text = str(error).split("\n")[0]
        raise ValueError(f"{path} is no model that Keras loads by itself: {text}") from None


def _network(graph: keras.Model) -> keras.Model:
    """The network from images to probabilities, without what makes images of pixels."""
    import keras

    last = graph.layers[-1]
    return last if isinstance(last, keras.Model) else graph


def _takes_pixels(graph: keras.Model) -> bool:
    from cxr_study.models.pixel_graph import PIXELS

    return _network(graph) is not graph and [one.name for one in graph.inputs] == [PIXELS]
