"""How commands are declared, and the options that several have."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from copy import copy
from pathlib import Path
from textwrap import dedent
from typing import Annotated, Any, TypeVar, get_args, get_origin

import typer
from typer import Argument, Option

from cxr_study.common import offered_data
from cxr_study.common.offered_data import DRAWINGS
from cxr_study.jobs.methods import JOBS
from cxr_study.jobs.presets import PRESETS
from surgical_aggregation.extras import offered_body

_Command = TypeVar("_Command", bound=Callable[..., None])


def command(app: typer.Typer, name: str | None = None) -> Callable[[_Command], _Command]:
    """Add a function to a group of commands; its docstring is what `--help` says.

    The sections "Options" and "Example" of the docstring are the help of its parameters, and what
    stands below them. Without a default a parameter is an argument, and if it is keyword-only a
    required option; what else typer must know of one is in its annotation.
    """

    def add(function: _Command) -> _Command:
        text, *rest = re.split(r"\n\n(Options|Example):\n", inspect.getdoc(function) or "")
        sections = dict(zip(rest[::2], map(_entries, rest[1::2]), strict=True))
        helps = dict(entry.split(": ", 1) for entry in sections.get("Options", ()))
        signature = inspect.signature(function, eval_str=True)
        explained = [_explained(one, helps.get(one.name)) for one in signature.parameters.values()]
        made: Any = function
        made.__signature__ = signature.replace(parameters=explained)
        example = "      ".join(sections.get("Example", ()))
        app.command(name, help=text, epilog=f"Example:  {example}")(function)
        return function

    return add


def _entries(section: str) -> list[str]:
    """What stands in a section of a docstring; further lines of an entry are indented."""
    return [" ".join(entry.split()) for entry in re.split(r"\n(?! )", dedent(section))]


def _explained(parameter: inspect.Parameter, text: str | None) -> inspect.Parameter:
    """A command's parameter as typer takes it, with its help."""
    kind, info = parameter.annotation, None
    if get_origin(kind) is Annotated:
        kind, info = get_args(kind)
    elif parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY:
        info = Argument()
    info = copy(info or Option())
    info.help = text or info.help
    return parameter.replace(annotation=Annotated[kind, info])


def _folder(named: Path | None) -> Path | None:
    return named and offered_data.site_files(named)


def _body(named: Path | None) -> Path | None:
    if named == Path(DRAWINGS):
        return offered_data.drawings()
    return named and (offered_body(str(named)) or named)


JOB = f"{', '.join(JOBS)}, or a job folder."
JobName = Annotated[Path, Argument(help=JOB)]
Out = Annotated[Path, Option(help="New folder for everything the run makes.")]
Settings = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="[SITE:]NAME=VALUE",
        help="A setting of the job, or of one site of it; may be repeated. surgagg run --settings "
        "lists them.",
    ),
]
Force = Annotated[bool, Option(help="Remove --out first if it is a run's folder.")]
LocalModels = Annotated[bool, Option(help="Also train each site alone, for comparison.")]
Preset = Annotated[
    list[str] | None,
    Option(
        help=f"Settings that go together: {', '.join(PRESETS)}; may be repeated. --set wins.",
    ),
]
Sites = Annotated[str, Option(help="Names, by comma. Default: the job's.")]
Phantom = Annotated[bool, Option("--phantom", help="Drawn images, in place of --site-files.")]
SiteFiles = Annotated[
    Path | None, Option(help="Folder of <site>.yaml: real data.", callback=_folder)
]
InitialBody = Annotated[
    Path | None,
    Option(
        help=f"Checkpoint to start from, or '{DRAWINGS}': pre-trained on drawings, the default of "
        "--phantom alone.",
        callback=_body,
    ),
]
Model = Annotated[Path, Argument(help="A run's folder, or a checkpoint such as best.npz.")]
Site = Annotated[str | None, Option(help="Whose personal model, after fedbn or personalised.")]
OwnSite = Annotated[
    str | None,
    Option(help="module:Class of your own Site, where the sites that trained the model are such."),
]
Arguments = Annotated[
    list[str] | None,
    Option("--arg", metavar="NAME=VALUE", help="Of that class; {SITE_NAME}: the site's name."),
]
