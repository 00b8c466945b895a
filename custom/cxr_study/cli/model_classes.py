"""The commands that add and remove classes: `surgagg model import`, `remove-classes`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from cxr_study.cli.model_use import Model
from cxr_study.cli.run import SiteFiles, say, split
from cxr_study.common.wording import counted, listed

if TYPE_CHECKING:
    from cxr_study.models.loaded_model import LoadedModel
    from cxr_study.models.own_model import OwnModel
    from surgical_aggregation.checkpoints.checkpoint import Checkpoint

IMPORT_EPILOG = (
    "Example:  surgagg model import runs/demo --classes Hernia,Edema --into mine.npz --out new.npz"
)
REMOVE_EPILOG = (
    "Example:  surgagg model remove-classes best.npz Hernia --out without.npz"
    "      surgagg model remove-classes runs/demo --all-but Hernia,Edema --out two.npz"
)


def add_to(app: typer.Typer) -> None:
    """Make them commands of a group."""
    app.command("import", epilog=IMPORT_EPILOG)(import_)
    app.command("remove-classes", epilog=REMOVE_EPILOG)(remove_classes)


def import_(
    model: Annotated[Path, Argument(help="Run or checkpoint that has the classes.")],
    classes: Annotated[str, Option(help="Names, by comma.")],
    into: Annotated[Path, Option(help="Your model: a checkpoint, or a file .keras.")],
    out: Annotated[Path, Option(help="New file for your model with the classes.")],
    own_classes: Annotated[
        str, Option(help="Names of the outputs of a .keras file that does not have them, by comma.")
    ] = "",
    refit: Annotated[
        bool, Option("--refit", help="Fit the columns on your own labelled images.")
    ] = False,
    site_files: SiteFiles = None,
    sites: Annotated[str, Option(help="Your site, to fit on.")] = "",
) -> None:
    """Add classes of a trained model to your own, without training it; your columns stay.

    A column means something only to the body that it was trained on. Where your body is another
    one, --refit fits the columns anew on images that you have labelled.
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
    say(f"own       {listed(own.classes)}: unchanged")
    say(f"imported  {listed(names)}, from {source.file}")
    if not refit:
        say("Nobody has tested them on your images: see surgagg model evaluate.")


def remove_classes(
    model: Model,
    out: Annotated[Path, Option(help="New file for the model without them.")],
    classes: Annotated[
        list[str] | None, Argument(help="Names of the classes to remove.", show_default=False)
    ] = None,
    all_but: Annotated[str, Option(help="Or names of those to keep, by comma.")] = "",
) -> None:
    """Take classes out of a model on purpose; nothing else ever removes one."""
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
    say(f"{out}: {counted(len(left), 'class', 'classes')}: {listed(left)}")
    if gone := sorted({*wire.classes_of(checkpoint.variables)} - {*left}):
        say(f"without {listed(gone)}. A site that labels one of them would train it anew, in a")
        say("run that goes on from this model: change its 'classes' first.")


def check_new(out: Path) -> None:
    """Refuse to write over a file."""
    if out.exists():
        raise FileExistsError(f"the model needs a new file; {out} exists. Give another --out.")


def _refitted(
    own: OwnModel, source: LoadedModel, names: tuple[str, ...], site_files: Path | None, sites: str
) -> Checkpoint:
    from cxr_study.models import own_model
    from surgical_aggregation.checkpoints.class_changes import with_columns

    if site_files is None or len(split(sites)) != 1:
        raise typer.BadParameter(
            "fitting needs your labelled images: --site-files sites --sites a", param_hint="--refit"
        )
    body, file = own_model.loaded(own), site_files / f"{sites}.yaml"
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
