"""What to install where an import fails: the extra of this software that has the package."""

from __future__ import annotations

import re
from importlib.metadata import requires

_PROJECT = "surgical-aggregation"
_CALLED = {
    "PIL": "pillow",
    "gdcm": "python-gdcm",
    "sklearn": "scikit-learn",
    "tenseal": "nvflare[he]",
    "yaml": "pyyaml",
}
"""Module -> name of its package, where the two differ."""


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
