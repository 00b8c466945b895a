"""Knobs in a configuration's text: the primitive settings at its top, `name = value`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache

from pyhocon import ConfigFactory

_KNOB = re.compile(
    r"""^(?P<name>\w+)[ ]=[ ](?P<value>"(?:[^"\\\n]|\\.)*"|[^#"\[{\n]*?)(?P<rest>[ ]*(?:\#.*)?)$""",
    re.M | re.X,
)


@lru_cache
def read_knobs(text: str) -> Mapping[str, object]:
    """Knob -> value."""
    # A tenth of a second each time, and one run looks at its job a dozen times.
    parsed = ConfigFactory.parse_string(text)
    names = [match["name"] for match in _KNOB.finditer(text)]
    return {name: parsed[name] for name in names if name != "format_version"}


def set_knobs(text: str, settings: Mapping[str, object]) -> str:
    """The text with those of its knobs set; every other character is kept."""

    def line(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in settings:
            return match[0]
        # As it is: pyhocon does not read an escaped letter back.
        value = json.dumps(settings[name], ensure_ascii=False)
        return f"{name} = {value}{match['rest']}"

    return _KNOB.sub(line, text)
