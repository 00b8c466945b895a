"""What packages beside the method offer, and what to install where one is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import entry_points, requires
from typing import Any

_PROJECT = "surgical-aggregation"
_CALLED = {
    "PIL": "pillow",
    "gdcm": "python-gdcm",
    "sklearn": "scikit-learn",
    "tenseal": "nvflare[he]",
    "yaml": "pyyaml",
}
"""Module -> name of its package, where the two differ."""


def offered(group: str) -> Iterator[Any]:
    """What installed packages offer under a group of entry points; without what is not there."""
    for entry in entry_points(group=group):
        with suppress(ModuleNotFoundError):
            yield entry.load()


def missing(error: ModuleNotFoundError) -> str | None:
    """Say what to install.

    Returns:
        The package and the extra that has it; None where no extra does.
    """
    module = str(error.name).partition(".")[0]
    package = _CALLED.get(module, module)
    asked = re.compile(rf"{re.escape(package)}(?![\w-]).*extra == [\"'](\w+)", re.IGNORECASE)
    extra = next(filter(None, map(asked.match, requires(_PROJECT) or ())), None)
    if extra is None:
        return None
    return (
        f"the package {package} is not installed. It comes with an extra: pip install "
        f"'{_PROJECT}[{extra[1]}]'"
    )
