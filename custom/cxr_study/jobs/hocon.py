"""Knobs in a configuration's text: the primitive settings at its top, `name = value`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from cxr_study.jobs.job_settings import JobError

_KNOB = re.compile(
    r"""^(?P<name>\w+)[ ]=[ ](?P<value>"(?:[^"\\\n]|\\.)*"|[^#"\[{\n]*?)(?P<rest>[ ]*(?:\#.*)?)$""",
    re.M | re.X,
)


def read_knobs(text: str) -> dict[str, object]:
    """Knob -> value.

    Raises:
        JobError: A value is not written as JSON is; names the knob and its line.
    """
    knobs = {match["name"]: _value(match) for match in _KNOB.finditer(text)}
    knobs.pop("format_version", None)
    return knobs


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


def _value(knob: re.Match[str]) -> object:
    try:
        return json.loads(knob["value"])
    except json.JSONDecodeError:
        line = knob.string.count("\n", 0, knob.start()) + 1
        raise JobError(
            f"line {line}: knob {knob['name']!r} needs a number, true, false, or a text in double "
            f"quotes; got {knob['value']}."
        ) from None
