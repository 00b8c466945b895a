"""What `module:name` stands for, in the hospital's own commands and files alone.

A name that comes with a job is never imported, see `surgical_aggregation.extras.find_part`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cxr_study.common.errors import InputError


def by_path(name: str) -> Any:
    """What `module:name` stands for, of a module that Python finds.

    Raises:
        InputError: There is no such module, or nothing of this name in it.
    """
    module, _, attribute = name.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"there is no {attribute} in module {module!r} ({error}). Modules are looked for where "
            "Python has its packages."
        ) from None
