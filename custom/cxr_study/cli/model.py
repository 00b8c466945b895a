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
    "      surgagg model init own.npz --site my.module:MySite --arg site=north --arg folder=data"
)
def init(
    context: typer.Context,
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
    site: Annotated[
        str | None,
        Option(help="module:Class of a Site of your own, whose model() it is, in place of these."),
    ] = None,
    arguments: Annotated[
        list[str] | None,
        Option("--arg", metavar="NAME=VALUE", help="Of that class; may be repeated."),
    ] = None,
) -> None:
    """Make the initial body that every site of a run starts from."""
    from surgical_aggregation.checkpoints.checkpoint import save
    from surgical_aggregation.site.training import tensorflow_setup

    tensorflow_setup.configure(tensorflow_setup.cores(), seed)
    from cxr_study.common.errors import InputError
    from cxr_study.training.network import Network, build
    from cxr_study.training.own_site import own_site
    from surgical_aggregation.aggregation import strategy
    from surgical_aggregation.site.contract.architecture import initial_body

    if site is not None:
        for name in ("backbone", "weights", "image_size", "hidden"):
            source, flag = context.get_parameter_source(name), f"--{name.replace('_', '-')}"
            if source is not None and source.name == "COMMANDLINE":
                raise InputError(f"a site of your own brings its network; leave out {flag}.")
        own = own_site(site, arguments or [])
        checkpoint = initial_body(own.model(), **own.network_facts, seed=seed)
    elif arguments:
        raise InputError("--arg is for the class that --site names; got no --site.")
    else:
        path = None if weights == "none" else weights
        model = build(backbone, 1, image_size=image_size, hidden=hidden, weights=path)
        facts = Network(backbone, image_size, hidden).facts()
        checkpoint = initial_body(model, **facts, weights=weights, seed=seed)
    save(checkpoint, file)
    digest = checkpoint.manifest["initial_body_sha256"]
    say(f"{file}: {len(checkpoint.variables)} variables, sha256 {digest}")
    kinds = strategy.kinds_of(checkpoint.manifest, checkpoint.variables)
    try:
        strategy.find("fedbn+").check_start(checkpoint.variables, kinds)
    except strategy.StrategyError:
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
