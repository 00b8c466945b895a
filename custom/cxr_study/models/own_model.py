"""Import classes into a hospital's own model, a checkpoint or a Keras file.

A class is imported as the column of another model's head, or its column is refitted on the
hospital's own labelled images.
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
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest, load, save
from surgical_aggregation.checkpoints.manifest import Manifest
from surgical_aggregation.checkpoints.model_facts import facts_of
from surgical_aggregation.site.contract.site import SiteError
from surgical_aggregation.site.training.column_refit import FeatureSplit, best_refit
from surgical_aggregation.site.training.tensorflow_setup import import_quietly
from surgical_aggregation.wire import variables as wire

if TYPE_CHECKING:
    import keras

FEWEST = 20
"""Smallest number of positive, and of negative, training images to fit a column on."""


@dataclass(frozen=True, eq=False)
class OwnModel:
    """A model into which classes are imported.

    Attributes:
        checkpoint: Its variables, with a manifest as far as known.
        file: The file that it was read from.
        classes: Names of its outputs, in order.
        graph: The Keras model of a Keras file; None: the file is a checkpoint.
        takes_pixels: Whether the graph includes resizing and normalisation, as those exported by
            this package do.
        facts: Metadata in a Keras file, see `export_model.metadata`; None: there is none.
    """

    checkpoint: Checkpoint
    file: Path
    classes: tuple[str, ...]
    graph: keras.Model | None = None
    takes_pixels: bool = False
    facts: dict[str, Any] | None = None


def read(path: Path, own_classes: Sequence[str] = ()) -> OwnModel:
    """Read a model.

    A Keras file is either exported by `surgagg export`, or any network whose last layer is a Dense
    layer named "head" with a sigmoid.

    Args:
        path: A checkpoint, or a file .keras.
        own_classes: Names of the outputs of a Keras file that does not contain them, in order.

    Raises:
        ValueError: The Keras file does not exist, is not such a network, or its classes are not
            known.
        CheckpointError: The checkpoint cannot be read.
    """
    if path.suffix != ".keras":
        checkpoint = load(path)
        return OwnModel(checkpoint, path, wire.classes_of(checkpoint.variables))
    if not path.is_file():
        raise ValueError(f"the model to import into is needed; {path} does not exist.")
    graph = _load_graph(path)
    facts = export_model.read_metadata(path)
    names = tuple(facts["classes"]) if facts else tuple(own_classes)
    if not names:
        raise ValueError(
            f"{path} does not name the classes that it predicts. Name them in the order of its "
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
    """Write a model with new columns, in the format that it was read in.

    Args:
        model: As it was read.
        checkpoint: The model's body, with its own and the new columns. In a Keras file the model's
            own classes keep their order, and the new ones follow.
        out: New file; see `check`.
    """
    if model.graph is None:
        save(checkpoint, out)
        return
    _, columns = wire.split(checkpoint.variables)
    names = [*model.classes, *(name for name in columns if name not in model.classes)]
    grown = with_head(_network(model.graph), len(names))
    kernels, biases = zip(*(columns[name] for name in names), strict=True)
    grown.layers[-1].set_weights([np.stack(kernels, axis=1), np.concatenate(biases)])
    if model.takes_pixels:
        from cxr_study.models.pixel_graph import with_pixel_input

        grown = with_pixel_input(grown, network_of(checkpoint).normalisation)
    before, made = model.facts or {}, facts_of(checkpoint)
    origins = {name: dict(of.imported) for name, of in made.trained.items() if of.imported}
    new: dict[str, dict[str, Any]] = {
        "trained_by": {name: list(made.trained[name].sites) for name in origins},
        "never_learned": {n: why for n, why in made.never_learned.items() if n in origins},
        "imported": origins,
    }
    facts = {**before, "classes": names, "model_sha256": digest(checkpoint.variables)}
    facts |= {key: {**before.get(key, {}), **of_new} for key, of_new in new.items()}
    export_model.write_network(grown, "keras", out, facts)


def to_loaded_model(model: OwnModel) -> LoadedModel:
    """Make a model for prediction.

    Raises:
        ValueError: The model is a Keras file without resizing and normalisation, so the form of its
            input images is not known.
        CheckpointError: The checkpoint's manifest does not name a known network.
    """
    if model.graph is not None and not model.takes_pixels:
        raise ValueError(
            f"{model.file} does not state how its input images are made; only a checkpoint, or a "
            "file that surgagg export wrote, can be used for prediction."
        )
    return LoadedModel(model.file, model.checkpoint, network_of(model.checkpoint))


def check(model: OwnModel, out: Path) -> None:
    """Check that `write` can write a file.

    Args:
        model: The model to be written.
        out: The new file.

    Raises:
        ValueError: The suffix is not that of the model's format.
        FileExistsError: `out` exists.
    """
    suffix = ".npz" if model.graph is None else ".keras"
    if out.suffix != suffix:
        raise ValueError(f"{model.file} becomes a file {suffix}; got {out}.")
    if out.exists():
        raise FileExistsError(f"the model needs a new file; {out} exists. Give another --out.")


def refit(
    train: Predictions, validation: Predictions, classes: Sequence[str]
) -> tuple[wire.Columns, dict[str, dict[str, Any]]]:
    """Fit a column for each class to the features of labelled images; the body is not changed.

    Args:
        train: Predictions for the site's training split by the model into which the classes are
            imported.
        validation: Predictions for its validation split, by which the penalty is chosen; see
            `best_refit`.
        classes: Names of classes that the site labels.

    Returns:
        Class -> its column; and class -> an entry for the manifest with the key "refit": the site,
        the numbers of training images and of positive ones, and the AUROC on the validation split
        (None: not defined).

    Raises:
        ValueError: A class has fewer than `FEWEST` positive or negative training images, or no
            fitted column has a smaller validation loss than a constant probability of 0.5.
    """
    columns: wire.Columns = {}
    facts: dict[str, dict[str, Any]] = {}
    site = train.images.site
    for name in classes:
        fitted, held_out = (
            FeatureSplit(split.features, split.images.labels([name]))
            for split in (train, validation)
        )
        counts = [int((fitted.labels == value).sum()) for value in (1, 0)]
        if min(counts) < FEWEST:
            raise ValueError(
                f"{name} needs {FEWEST} positive and {FEWEST} negative training images at "
                f"{site} to be fitted; there are {counts[0]} and {counts[1]}."
            )
        zero = np.zeros((fitted.features.shape[1], 1), np.float32), np.zeros(1, np.float32)
        kernel, bias, penalty = best_refit(fitted, held_out, *zero)
        if penalty is None:
            raise ValueError(
                f"{name} cannot be fitted: no column is better on the labelled validation images "
                f"of {site} than a constant 0.5. Are there such images, labelled in the same way?"
            )
        columns[name] = (kernel[:, 0], bias)
        (score,) = auroc(held_out.labels, held_out.features @ kernel + bias)
        made = {"site": site, "images": sum(counts), "positives": counts[0]}
        facts[name] = {"refit": {**made, "auroc": None if np.isnan(score) else float(score)}}
    return columns, facts


def _load_graph(path: Path) -> keras.Model:
    """Load a Keras file, uncompiled; `ValueError` if Keras cannot load it without other code."""
    import_quietly()
    import keras

    try:
        return keras.saving.load_model(path, compile=False)
    except Exception as error:  # Keras raises many kinds
        text = str(error).split("\n")[0]
        raise ValueError(f"{path} is no model that Keras loads by itself: {text}") from None


def _network(graph: keras.Model) -> keras.Model:
    """The network from images to probabilities, without a graph's resizing and normalisation."""
    import keras

    last = graph.layers[-1]
    return last if isinstance(last, keras.Model) else graph


def _takes_pixels(graph: keras.Model) -> bool:
    """Whether a graph was exported with resizing and normalisation; see `pixel_graph`."""
    from cxr_study.models.pixel_graph import PIXELS

    return _network(graph) is not graph and [one.name for one in graph.inputs] == [PIXELS]
