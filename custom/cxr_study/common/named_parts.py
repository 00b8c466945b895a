"""Load objects that are named as `module:name`.

Only names from a hospital's own commands and files are loaded in this way. A name that comes with
a job is never imported; see `surgical_aggregation.extras.find_part`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cxr_study.common.errors import InputError


def load_object(name: str) -> Any:
    """Import the object that `module:name` names.

    Args:
        name: Dotted path of a module on Python's search path, a colon, and a name in the module.

    Raises:
        InputError: There is no such module, it cannot be imported, or it has no such name.

    Example:
        >>> load_object("os.path:sep")
        '/'
    """
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"there is no {attribute} in module {module!r} ({error}). It must be on Python's "
            "search path (PYTHONPATH)."
        ) from None
