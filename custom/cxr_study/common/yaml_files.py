"""YAML files that people write: read, validated, and whatever is wrong told by file and key."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from cxr_study.common.spelling import nearest

_NEEDS = {
    "string_type": "a text (in quotes where it is a number)",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "list_type": "a list with one entry or more",
    "tuple_type": "a list with one entry or more",
    "too_short": "a list with one entry or more",
    "dict_type": "lines 'key: value'",
    "model_type": "lines 'key: value'",
    "dataclass_type": "lines 'key: value'",
    "literal_error": "{expected}",
    "greater_than_equal": "a number of {ge} or more",
}
"""Type of an error of pydantic -> what the value needs."""


class NeedError(ValueError):
    """A value is not what its key needs; for validators.

    Args:
        need: What it needs.
        got: What it has instead. Default: the whole value.
    """

    def __init__(self, need: str, *got: object):
        super().__init__(need)
        self.got = got


class Lines(BaseModel):
    """Base of the models of YAML files: lines 'key: value', of which every key is known."""

    model_config = ConfigDict(frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, values: object) -> object:
        for key in values if isinstance(values, dict) else ():
            if key not in cls.model_fields:
                near = nearest(str(key), tuple(cls.model_fields))
                raise ValueError(f"key '{key}' is not known; {near}.")
        return values


Model = TypeVar("Model", bound=BaseModel)


def _target(value: object, info: ValidationInfo) -> Path:
    if not isinstance(value, str):
        raise NeedError("a path")
    file: Any = info.context
    return Path(os.path.normpath(file.parent / Path(value).expanduser()))


def _file(value: object, info: ValidationInfo) -> Path:
    target = _target(value, info)
    if not target.is_file():
        raise NeedError(f"a file that exists (looked for {target})")
    return target


def _folder(value: object, info: ValidationInfo) -> Path:
    target = _target(value, info)
    if not target.is_dir():
        raise NeedError(f"a folder that exists (looked for {target})")
    return target


Target = Annotated[Path, PlainValidator(_target)]
"""A path, relative to the file's folder; becomes absolute."""
ExistingFile = Annotated[Path, PlainValidator(_file)]
ExistingFolder = Annotated[Path, PlainValidator(_folder)]


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


def read_yaml(path: Path, kind: str, error: type[ValueError]) -> dict[Any, Any]:
    """Read the lines 'key: value' of a YAML file.

    Args:
        path: The file.
        kind: What it is, for messages.
        error: What is raised where something is wrong.

    Raises:
        ValueError: `error`: the file does not exist, is not YAML, or has no lines 'key: value' or
            the same key twice.
    """
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except FileNotFoundError:
        raise error(f"{kind} {path} does not exist.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as problem:
        raise error(f"{kind} {path} cannot be read as YAML: {problem}") from problem
    if not isinstance(values, dict):
        raise error(f"{path}: needs lines 'key: value'; got {values!r}.")
    return values


def read_model(model: type[Model], path: Path, kind: str, error: type[ValueError]) -> Model:
    """Read a YAML file and validate it.

    Args:
        model: What the file has to be, a `Lines`; its validators find the absolute path of the file
            as `info.context`.
        path: See `read_yaml`, like the others.
        kind: What it is, for messages.
        error: What is raised where something is wrong.

    Raises:
        ValueError: `error`: see `read_yaml`, or a key is missing, unknown or not what it should be.
    """
    path = Path(path).absolute()
    values = read_yaml(path, kind, error)
    try:
        return model.model_validate(values, context=path)
    except ValidationError as problem:
        raise error(f"{path}: {said(problem, values)}") from None


def said(problem: ValidationError, values: object) -> str:
    """Say what is wrong first with some values: where, what it needs, what it has."""
    first = problem.errors()[0]
    place, got, context = "", first["input"], first.get("ctx", {})
    for part in first["loc"]:
        if isinstance(values, list) and isinstance(part, int):
            place, values = f"{place}, entry {part + 1}", values[part]
        elif isinstance(values, dict) and part in values:
            place, values = f"{place}, key '{part}'", values[part]
    place = place.removeprefix(", ")
    if first["type"] == "missing":
        has = ", ".join(map(str, got)) or "none"
        return f"{place} needs key '{first['loc'][-1]}'; has {has}.".lstrip()
    error = context.get("error")
    if isinstance(error, NeedError):
        need, got = str(error), error.got[0] if error.got else got
    elif error is not None:
        return f"{place}: {error}".removeprefix(": ")
    else:
        told = {key: str(value).replace("'", "") for key, value in context.items()}
        known = _NEEDS.get(first["type"])
        need = known.format(**told) if known else first["msg"].removeprefix("Input should be ")
    return f"{place} needs {need}; got {got!r}."


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
    """Read a YAML file as `Keys`; see `read_yaml`."""
    path = Path(path).absolute()
    return Keys(path, read_yaml(path, kind, error), error)
