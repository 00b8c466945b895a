"""Declaration of commands from docstrings, and the options that several commands share."""

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
    """Decorator that adds a function to a group of commands; its docstring becomes the help.

    The docstring's section "Options" has the help of the parameters, an entry "name: text" each;
    its section "Example" is shown below the options. A parameter without a default is an argument,
    or a required option if it is keyword-only. Everything else that typer needs to know of a
    parameter is in its annotation.

    Args:
        app: The group.
        name: Of the command. Default: the function's, with hyphens.
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
    """Entries of a docstring's section; continued lines of an entry are indented."""
    return [" ".join(entry.split()) for entry in re.split(r"\n(?! )", dedent(section))]


def _explained(parameter: inspect.Parameter, text: str | None) -> inspect.Parameter:
    """Parameter of a command, annotated for typer with its help text."""
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
Out = Annotated[Path, Option(help="New folder for the results.")]
Settings = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="[SITE:]NAME=VALUE",
        help="A setting of the job, or of one of its sites; may be repeated. List: surgagg run "
        "--settings.",
    ),
]
Force = Annotated[bool, Option(help="Replace --out if it is the folder of a run.")]
LocalModels = Annotated[bool, Option(help="Also train each site alone, for comparison.")]
Preset = Annotated[
    list[str] | None,
    Option(
        help=f"Group of settings: {', '.join(PRESETS)}; may be repeated. --set wins.",
    ),
]
Sites = Annotated[str, Option(help="Names, separated by commas. Default: the job's.")]
Phantom = Annotated[bool, Option("--phantom", help="Drawn images instead of --site-files.")]
SiteFiles = Annotated[
    Path | None, Option(help="Folder of <site>.yaml: real data.", callback=_folder)
]
InitialBody = Annotated[
    Path | None,
    Option(
        help=f"Checkpoint to start from, or '{DRAWINGS}' (pre-trained on drawings), the default "
        "with --phantom only.",
        callback=_body,
    ),
]
Model = Annotated[Path, Argument(help="A run's folder, or a checkpoint such as best.npz.")]
Site = Annotated[str | None, Option(help="Site of a personal model, after fedbn or personalised.")]
OwnSite = Annotated[
    str | None,
    Option(help="module:Class of your own Site, if the model was trained with it."),
]
Arguments = Annotated[
    list[str] | None,
    Option(
        "--arg",
        metavar="NAME=VALUE",
        help="Argument of that class; {SITE_NAME} is the site's name.",
    ),
]
