"""A checkpoint as the network that it was trained as."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surgical_aggregation.checkpoints.checkpoint import Checkpoint, CheckpointError
from surgical_aggregation.wire import variables as wire

if TYPE_CHECKING:  # TensorFlow must not start before its threads are set
    from cxr_study.training.network_facts import Network
    from surgical_aggregation.site.training.keras_model import LocalModel


def restore(checkpoint: Checkpoint, network: Network) -> LocalModel:
    """Build a network and load a checkpoint: a global model, or a site's own.

    Its classes are the checkpoint's, sorted by name.

    Raises:
        CheckpointError: The checkpoint has no class: it is an initial body, or heads stayed at
            their sites.
        SiteError: It does not fit the network.
    """
    from cxr_study.training.network import build
    from surgical_aggregation.site.training.keras_model import LocalModel

    columns = wire.classes_of(checkpoint.variables)
    if not columns:
        raise CheckpointError(
            "a model with a head is needed; this one has no class. It is an initial body, or its "
            "sites kept their heads: ask for a site's own model."
        )
    model = build(
        network.backbone, len(columns), image_size=network.image_size, hidden=network.hidden
    )
    local = LocalModel(model, columns)
    load_into(local, checkpoint)
    return local


def load_into(local: LocalModel, checkpoint: Checkpoint) -> None:
    """Load a checkpoint into a network of its classes.

    Raises:
        SiteError: It does not fit the network.
    """
    body, columns = wire.split(checkpoint.variables)
    local.set_body(body)
    local.set_columns(columns)
