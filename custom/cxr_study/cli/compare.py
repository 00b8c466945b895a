"""What `surgagg compare` answers since it is a study: `surgagg study run methods`."""

from __future__ import annotations

from typing import Any

import typer

OLD: dict[str, Any] = {
    "hidden": True,
    "context_settings": {"ignore_unknown_options": True, "allow_extra_args": True},
    "add_help_option": False,
}
"""How a command that is no more takes whatever options it had."""


def compare(_: typer.Context) -> None:
    """Say the new spelling."""
    raise ValueError(
        "surgagg compare is now: surgagg study run methods (with head weightings: surgagg study "
        "run methods head-weightings). Site files, settings and the initial body stand in the "
        "file of --data, rounds and patience in the study file; see custom/README.md, Studies."
    )
