"""The commands about checkpoints: `surgagg model`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from cxr_study.cli import model_classes, model_use
from cxr_study.cli.model_classes import check_new
from cxr_study.cli.run import say

app = typer.Typer(
    no_args_is_help=True,
    help="Describe, calibrate, make, cut and open the models that runs start from and leave.",
    epilog="Example:  surgagg model show runs/demo",
)
model_use.add_to(app)
model_classes.add_to(app)


@app.command(
    epilog="Example:  surgagg model init initial.npz --backbone densenet121 --weights imagenet"
)
def init(
    file: Annotated[Path, Argument(help="Checkpoint to write.")],
    backbone: Annotated[
        str, Option(help="densenet121, small_densenet, or any other of keras.applications.")
    ] = "densenet121",
    weights: Annotated[
        str, Option(help="imagenet, none (random), or a Keras weights file.")
    ] = "imagenet",
    image_size: Annotated[int, Option(help="Side of the images, pixels.")] = 224,
    hidden: Annotated[int, Option(help="Units between pooling and head; 0: none.")] = 0,
    seed: Annotated[int, Option(help="Of random weights.")] = 0,
) -> None:
    """Make the initial body that every site of a run starts from."""
    from surgical_aggregation.checkpoints.checkpoint import save
    from surgical_aggregation.site.training import tensorflow_setup

    tensorflow_setup.configure(tensorflow_setup.cores(), seed)
    from cxr_study.training.network import build
    from cxr_study.training.network_facts import Network
    from surgical_aggregation.site.contract.architecture import initial_body

    model = build(
        backbone,
        1,
        image_size=image_size,
        hidden=hidden,
        weights=None if weights == "none" else weights,
    )
    checkpoint = initial_body(
        model, **Network(backbone, image_size, hidden).facts(), weights=weights, seed=seed
    )
    save(checkpoint, file)
    digest = checkpoint.manifest["initial_body_sha256"]
    say(f"{file}: {len(checkpoint.variables)} variables, sha256 {digest}")
    if weights == "none":
        say("Random weights: take strategy fedavg or fedbn; fedbn+ freezes batch normalisation.")


@app.command(
    epilog="Example:  surgagg model decrypt best.npz --context client_context.tenseal "
    "--out plain.npz"
)
def decrypt(
    checkpoint: Annotated[Path, Argument(help="Checkpoint of an encrypted run.")],
    context: Annotated[Path, Option(help="client_context.tenseal of a site.")],
    out: Annotated[Path, Option(help="New file for the model in plain.")],
) -> None:
    """Open a model of homomorphically encrypted training, at a site; the server has no key."""
    check_new(out)
    import numpy as np

    from surgical_aggregation.checkpoints.checkpoint import CheckpointError, load, save
    from surgical_aggregation.wire import variables as wire

    encrypted = load(checkpoint)
    if not any(value.dtype == np.uint8 for value in encrypted.variables.values()):
        raise CheckpointError(f"{checkpoint} is not encrypted; it can be used as it is.")
    try:
        import tenseal

        from surgical_aggregation.encryption import ciphertext
    except ImportError:
        raise CheckpointError(
            "decrypting needs tenseal, which is not installed: pip install "
            "'surgical-aggregation[he]'."
        ) from None
    try:
        opened = tenseal.context_from(context.read_bytes())
    except ValueError as error:
        raise CheckpointError(f"{context} is no encryption context: {error}.") from error
    model = ciphertext.decrypted(encrypted, opened)
    save(model, out)
    say(f"{out}: {len(wire.classes_of(model.variables))} classes")
