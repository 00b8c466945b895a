"""Settings in a configuration's text: the primitive values at its top, `name = value`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from cxr_study.jobs.command_line_settings import JobError

_SETTING = re.compile(
    r"""^(?P<name>\w+)[ ]=[ ](?P<value>"(?:[^"\\\n]|\\.)*"|[^#"\[{\n]*?)(?P<rest>[ ]*(?:\#.*)?)$""",
    re.M | re.X,
)


def read(text: str) -> dict[str, object]:
    """Setting -> value.

    Raises:
        JobError: A value is not written as JSON is; names the setting and its line.
    """
    found = {match["name"]: _value(match) for match in _SETTING.finditer(text)}
    found.pop("format_version", None)
    return found


def changed(text: str, settings: Mapping[str, object]) -> str:
    """The text with those of its settings changed; every other character is kept."""

    def line(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in settings:
            return match[0]
        # As it is: pyhocon does not read an escaped letter back.
        value = json.dumps(settings[name], ensure_ascii=False)
        return f"{name} = {value}{match['rest']}"

    return _SETTING.sub(line, text)


def _value(match: re.Match[str]) -> object:
    try:
        return json.loads(match["value"])
    except json.JSONDecodeError:
        line = match.string.count("\n", 0, match.start()) + 1
        raise JobError(
            f"line {line}: setting {match['name']!r} needs a number, true, false, or a text in "
            f"double quotes; got {match['value']}."
        ) from None
