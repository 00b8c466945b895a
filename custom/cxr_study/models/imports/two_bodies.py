"""Two models in one file, where one cannot have the other's columns: each keeps its own body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cxr_study.models.export.export_model import OUTPUT
from cxr_study.models.imports.own_model import OwnModel, OwnModelError

if TYPE_CHECKING:
    import keras

OWN_INPUT = "own_input"
"""Name of the own model's input, where it does not take pixels as an exported model does."""


def together(own: OwnModel, imported: keras.Model) -> keras.Model:
    """Put two models side by side.

    Args:
        own: The hospital's; from a Keras file of one input and one output, or from a checkpoint.
        imported: From pixels to the probabilities of the imported classes (see
            `export_model.pixel_model`).

    Returns:
        A model with the input "pixels" (and `OWN_INPUT`, in the form of the own model's, unless
        that takes pixels), and the output `OUTPUT`: the own classes, then the imported ones.

    Raises:
        OwnModelError: The own model has several inputs or outputs, or not one per class.
    """
    import keras

    graph = own.graph
    if graph is None or len(graph.inputs) != 1 or len(graph.outputs) != 1:
        raise OwnModelError(f"{own.file} needs one input and one output to stand beside another.")
    if graph.outputs[0].shape[-1] != len(own.classes):
        raise OwnModelError(
            f"{own.file} has {graph.outputs[0].shape[-1]} outputs, and {len(own.classes)} names of "
            "classes."
        )
    pixels = keras.Input((None, None), name="pixels")
    inputs: dict[str, Any] = {"pixels": pixels}
    if not own.takes_pixels:
        inputs[OWN_INPUT] = keras.Input(
            graph.inputs[0].shape[1:], dtype=graph.inputs[0].dtype, name=OWN_INPUT
        )
    named = (
        keras.Model(graph.inputs[0], graph.outputs[0], name="own"),
        keras.Model(imported.inputs[0], imported.outputs[0], name="imported"),
    )
    said = [named[0](inputs.get(OWN_INPUT, pixels)), named[1](pixels)]
    both = keras.layers.Concatenate(name=OUTPUT)(said)
    return keras.Model(inputs if len(inputs) > 1 else pixels, {OUTPUT: both}, name="two_bodies")
