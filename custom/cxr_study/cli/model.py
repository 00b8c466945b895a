"""The commands `surgagg model init`, `import`, `remove-classes` and `decrypt`: edit checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from cxr_study.cli import options
from cxr_study.cli.common import say, split
from cxr_study.cli.options import command
from cxr_study.common.wording import counted, join_names

if TYPE_CHECKING:
    from cxr_study.models.loaded_model import LoadedModel
    from cxr_study.models.own_model import OwnModel
    from surgical_aggregation.checkpoints.checkpoint import Checkpoint

app = typer.Typer()


@command(app, "import")
def import_(
    model: Path,
    *,
    classes: str,
    into: Path,
    out: Path,
    own_classes: str = "",
    refit: Annotated[bool, Option("--refit")] = False,
    site_files: options.SiteFiles = None,
    sites: str = "",
) -> None:
    """Copy classes of a trained model into your own model; your columns stay unchanged.

    A column works only with the body that it was trained with. If your body is a different one,
    --refit fits the columns on your own labelled images.

    Options:
        model: Run or checkpoint that has the classes.
        classes: Names, separated by commas.
        into: Your model: a checkpoint or a .keras file.
        out: New file for your model with the classes.
        own_classes: Names of the outputs of a .keras file without class names, by comma.
        refit: Fit the columns on your own labelled images.
        sites: Your site, for --refit.

    Example:
        surgagg model import runs/demo --classes Hernia,Edema --into mine.npz --out new.npz
    """
    from cxr_study.models import own_model
    from cxr_study.models.loaded_model import load_model
    from surgical_aggregation.checkpoints import class_changes

    source = load_model(model)
    own = own_model.read(into, split(own_classes))
    names = class_changes.check_classes(own.checkpoint, source.checkpoint, split(classes))
    own_model.check(own, out)
    if refit:
        made = _refitted(own, source, names, site_files, sites)
    elif why := class_changes.differing_bodies(own.checkpoint, source.checkpoint):
        raise ValueError(
            f"the classes cannot be imported: {why}. Fit the columns on your own labelled images: "
            "--refit --site-files sites --sites a"
        )
    else:
        made = class_changes.import_classes(own.checkpoint, source.checkpoint, names)
    own_model.write(own, made, out)
    say(f"{out}: {counted(len(own.classes) + len(names), 'class', 'classes')}")
    say(f"own       {join_names(own.classes)}: unchanged")
    say(f"imported  {join_names(names)}, from {source.file}")
    if not refit:
        say("They are not tested on your images yet: see surgagg model evaluate.")


@command(app, "remove-classes")
def remove_classes(
    model: options.Model,
    classes: Annotated[list[str] | None, Argument(show_default=False)] = None,
    *,
    out: Path,
    all_but: str = "",
) -> None:
    """Remove classes from a model. No other command or job removes a class.

    Options:
        classes: Names of the classes to remove.
        out: New file for the model without them.
        all_but: Or names of the classes to keep, separated by commas.

    Example:
        surgagg model remove-classes best.npz Hernia --out without.npz
        surgagg model remove-classes runs/demo --all-but Hernia,Edema --out two.npz
    """
    check_new(out)
    if bool(classes) == bool(all_but):
        raise typer.BadParameter(
            "name the classes to remove, or those to keep: --all-but Hernia,Edema",
            param_hint="CLASSES",
        )
    from cxr_study.models.loaded_model import choose
    from surgical_aggregation.checkpoints.checkpoint import load, save
    from surgical_aggregation.checkpoints.class_changes import keep, remove
    from surgical_aggregation.wire import variables as wire

    file, _ = choose(model)
    checkpoint = load(file)
    made = remove(checkpoint, classes) if classes else keep(checkpoint, split(all_but))
    save(made, out)
    left = wire.classes_of(made.variables)
    say(f"{out}: {counted(len(left), 'class', 'classes')}: {join_names(left)}")
    if gone := sorted({*wire.classes_of(checkpoint.variables)} - {*left}):
        say(f"without {join_names(gone)}. If a run continues from this model, a site that labels")
        say("one of them trains it again from scratch: change the site's 'classes' first.")


@command(app)
def init(
    context: typer.Context,
    file: Path,
    backbone: str = "densenet121",
    weights: str = "imagenet",
    image_size: int = 224,
    hidden: int = 0,
    seed: int = 0,
    site: str | None = None,
    arguments: Annotated[list[str] | None, Option("--arg", metavar="NAME=VALUE")] = None,
) -> None:
    """Create the initial body that all sites of a run start from.

    Options:
        file: New file for the checkpoint.
        backbone: densenet121, small_densenet, or another network of keras.applications.
        weights: imagenet, none (random), or a Keras weights file.
        image_size: Side of the images, pixels.
        hidden: Units of a layer between pooling and head; 0: no such layer.
        seed: Random seed, for random weights.
        site: module:Class of your own Site; its model() is used instead of --backbone.
        arguments: Argument of that class; may be repeated.

    Example:
        surgagg model init initial.npz --backbone densenet121 --weights imagenet
        surgagg model init own.npz --site my.module:MySite --arg site=north --arg folder=data
    """
    check_new(file)
    from surgical_aggregation.checkpoints.checkpoint import save
    from surgical_aggregation.site.training import tensorflow_setup

    tensorflow_setup.configure(tensorflow_setup.cores(), seed)
    from cxr_study.common.errors import InputError
    from cxr_study.training.network import Network, build
    from cxr_study.training.own_site import own_site
    from surgical_aggregation.aggregation import batch_norm_strategy as strategies
    from surgical_aggregation.site.contract.architecture import initial_body

    if site is not None:
        for name in ("backbone", "weights", "image_size", "hidden"):
            source, flag = context.get_parameter_source(name), f"--{name.replace('_', '-')}"
            if source is not None and source.name == "COMMANDLINE":
                raise InputError(f"your own Site defines the network; leave out {flag}.")
        own = own_site(site, arguments or [])
        checkpoint = initial_body(own.model(), **own.network_facts, seed=seed)
    elif arguments:
        raise InputError("--arg needs --site, the class that takes it; got no --site.")
    else:
        path = None if weights == "none" else weights
        model = build(backbone, 1, image_size=image_size, hidden=hidden, weights=path)
        facts = Network(backbone, image_size, hidden).facts()
        checkpoint = initial_body(model, **facts, weights=weights, seed=seed)
    save(checkpoint, file)
    digest = checkpoint.manifest["initial_body_sha256"]
    say(f"{file}: {len(checkpoint.variables)} variables, sha256 {digest}")
    kinds = strategies.kinds_of(checkpoint.manifest, checkpoint.variables)
    try:
        strategies.check_body("fedbn+", checkpoint.variables, kinds)
    except strategies.StrategyError:
        say("Random weights: use strategy fedavg or fedbn; fedbn+ and fixbn freeze statistics.")


@command(app)
def decrypt(checkpoint: Path, *, context: Path, out: Path) -> None:
    """Decrypt a model of homomorphically encrypted training, at a site: only sites have the key.

    Options:
        checkpoint: Checkpoint of an encrypted run.
        context: client_context.tenseal of a site.
        out: New file for the decrypted model.

    Example:
        surgagg model decrypt best.npz --context client_context.tenseal --out plain.npz
    """
    check_new(out)
    import numpy as np

    from surgical_aggregation.checkpoints.checkpoint import CheckpointError, load, save
    from surgical_aggregation.wire import variables as wire

    encrypted = load(checkpoint)
    if not any(value.dtype == np.uint8 for value in encrypted.variables.values()):
        raise CheckpointError(f"{checkpoint} is not encrypted; it can be used directly.")
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
        raise CheckpointError(f"{context} is not an encryption context: {error}.") from error
    model = ciphertext.decrypted(encrypted, opened)
    save(model, out)
    say(f"{out}: {len(wire.classes_of(model.variables))} classes")


def check_new(out: Path) -> None:
    """Check that an output file does not exist.

    Raises:
        FileExistsError: It does.
    """
    if out.exists():
        raise FileExistsError(f"the model needs a new file; {out} exists. Give another name.")


def _refitted(
    own: OwnModel, source: LoadedModel, names: tuple[str, ...], site_files: Path | None, sites: str
) -> Checkpoint:
    """The own model with columns of these classes, fitted on a site's images; prints a report."""
    from cxr_study.models import own_model
    from surgical_aggregation.checkpoints.class_changes import with_columns

    if site_files is None or len(split(sites)) != 1:
        raise typer.BadParameter(
            "fitting needs your labelled images: --site-files sites --sites a", param_hint="--refit"
        )
    body, file = own_model.to_loaded_model(own), site_files / f"{sites}.yaml"
    train, validation = (body.predict_site(file, sites, of) for of in ("train", "validation"))
    columns, facts = own_model.refit(train, validation, names)
    for name in names:
        made = facts[name]["refit"]
        auroc = "not defined" if made["auroc"] is None else f"{made['auroc']:.3f}"
        say(
            f"{name}: fitted on {made['images']} images of {sites}, {made['positives']} positive; "
            f"AUROC on its validation split {auroc}"
        )
    return with_columns(own.checkpoint, source.checkpoint, columns, facts)
