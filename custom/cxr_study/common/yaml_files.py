"""Keys of YAML files that people write: whatever is wrong is told by file and key."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cxr_study.common.spelling import nearest


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice, where YAML would quietly take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value]
        for place, name in enumerate(names):
            if name in names[:place]:
                raise yaml.constructor.ConstructorError(
                    problem=f"key '{name}' stands twice",
                    problem_mark=node.value[place][0].start_mark,
                )
        return super().construct_mapping(node, deep)


@dataclass(frozen=True)
class Keys:
    """Lines 'key: value' that stand together in a YAML file.

    Attributes:
        path: The file, absolute.
        values: Key -> value, as read.
        error: What is raised where something is wrong.
        place: Where in the file, for messages; "" where there is one place only.
    """

    path: Path
    values: Mapping[str, Any]
    error: type[ValueError]
    place: str = ""

    def has(self, key: str) -> bool:
        """Whether there is such a line."""
        return key in self.values

    def check(self, known: Sequence[str], required: Sequence[str]) -> None:
        """Refuse a key that is not known, and the lack of one that is required."""
        for key in self.values:
            if key not in known:
                near = nearest(str(key), known)
                raise self.error(f"{self.path}: {self.place}key '{key}' is not known; {near}.")
        for key in required:
            if key not in self.values:
                has = ", ".join(map(str, self.values)) or "none"
                raise self.error(f"{self.path}: {self.place}needs key '{key}'; has {has}.")

    def refuse(self, keys: Sequence[str], where: str) -> None:
        """Refuse keys that have no use."""
        for key in keys:
            if key in self.values:
                raise self.error(f"{self.path}: {self.place}key '{key}' has no use {where}.")

    def need(self, key: str, need: str, got: object = None) -> ValueError:
        """The error to raise.

        Args:
            key: The key.
            need: What it needs.
            got: What it has instead. Default: its whole value.
        """
        shown = self.values[key] if got is None else got
        return self.error(f"{self.path}: {self.place}key '{key}' needs {need}; got {shown!r}.")

    def text(self, key: str) -> str:
        """A text that is not blank."""
        value = self.values[key]
        if not isinstance(value, str) or not value.strip():
            raise self.need(key, "a text (in quotes where it is a number)")
        return value

    def number(self, key: str, least: int) -> int:
        """A whole number of `least` or more."""
        value = self.values[key]
        if type(value) is not int or value < least:
            raise self.need(key, f"a whole number of {least} or more")
        return value

    def choice(self, key: str, choices: Sequence[str]) -> str:
        """One of some words."""
        value = self.values[key]
        if value not in choices:
            raise self.need(key, f"{', '.join(choices[:-1])} or {choices[-1]}")
        return str(value)

    def texts(self, key: str, known: Sequence[str]) -> tuple[str, ...]:
        """A list of some of the known words, one at least and each once."""
        values = self.values[key]
        if not isinstance(values, list) or not values:
            raise self.need(key, "a list with one entry or more")
        for place, value in enumerate(values):
            if value not in known:
                raise self.need(
                    key, f"entries that are known ({nearest(str(value), known)})", value
                )
            if value in values[:place]:
                raise self.need(key, "each entry once", value)
        return tuple(values)

    def below(self, key: str, need: str) -> Keys:
        """The lines below a key; `need` says of what form they are."""
        value = self.values[key]
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            raise self.need(key, need)
        return Keys(self.path, value, self.error, f"{self.place}key '{key}', ")

    def target(self, key: str) -> Path:
        """A path, relative to the file's folder, as an absolute one."""
        value = self.text(key)
        return Path(os.path.normpath(self.path.parent / Path(value).expanduser()))


def read_keys(path: Path, kind: str, error: type[ValueError]) -> Keys:
    """Read a YAML file.

    Args:
        path: The file.
        kind: What it is, for messages.
        error: What is raised where something is wrong, here and by what is returned.

    Raises:
        ValueError: `error`: the file does not exist, is not YAML, or has no lines 'key: value' or
            the same key twice.
    """
    path = Path(path).absolute()
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except FileNotFoundError:
        raise error(f"{kind} {path} does not exist.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as problem:
        raise error(f"{kind} {path} cannot be read as YAML: {problem}") from problem
    if not isinstance(values, dict):
        raise error(f"{path}: needs lines 'key: value'; got {values!r}.")
    return Keys(path, values, error)
