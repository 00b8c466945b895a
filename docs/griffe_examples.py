"""For the API page: "Example:" of a docstring is a section of examples."""

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Griffe's Google style knows the plural alone."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rename the section before the docstring is parsed."""
        if obj.docstring:
            obj.docstring.value = re.sub(r"(?m)^Example:$", "Examples:", obj.docstring.value)
