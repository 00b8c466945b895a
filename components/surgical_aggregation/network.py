"""What a site's network must be, so that its body and its head can travel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import keras

from surgical_aggregation.averaging import Array
from surgical_aggregation.site import SiteError
from surgical_aggregation.strategy import HEAD_LAYER


def head_layer(model: keras.Model, classes: tuple[str, ...]) -> keras.layers.Dense:
    """The last layer of a model.

    Raises:
        SiteError: It is no Dense called "head" with one unit per class.
    """
    layer = model.layers[-1]
    if layer.name != HEAD_LAYER or not isinstance(layer, keras.layers.Dense):
        raise SiteError(
            f"the model's last layer must be a Dense called {HEAD_LAYER!r}; got "
            f"{type(layer).__name__} called {layer.name!r}."
        )
    if layer.units != len(classes):
        raise SiteError(
            f"the head needs one unit for each of {len(classes)} classes; it has {layer.units}."
        )
    return layer


def all_layers(layer: keras.Layer) -> Iterator[keras.Layer]:
    """A layer and those inside it, however deep: a backbone may stand in a model as one layer."""
    yield layer
    for inner in getattr(layer, "layers", ()):
        yield from all_layers(inner)


def check_body(body: Mapping[str, Array], own: Mapping[str, keras.Variable]) -> None:
    """Refuse a body that is not this network's.

    Args:
        body: As received, by path.
        own: The network's variables, by path.

    Raises:
        SiteError: The paths or shapes differ.
    """
    differ = sorted(body.keys() ^ own.keys())
    if not differ:
        differ = sorted(path for path in own if body[path].shape != tuple(own[path].shape))
    if differ:
        raise SiteError(
            f"the server's body and this site's differ in {len(differ)} variables, e.g. "
            f"{differ[:3]}. Start the run from an initial body of the same backbone and image "
            "size as the sites' model."
        )
