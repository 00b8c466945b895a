"""Read and validate YAML files that people write; errors name the file, the key and the need."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    DirectoryPath,
    Field,
    FilePath,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from cxr_study.common.spelling import nearest
from surgical_aggregation.wire.untrusted_text import LONGEST, one_line

_NEEDS = {
    "string_type": "a text (in quotes where it is a number)",
    "string_pattern_mismatch": "a text that is not blank",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list with one entry or more"),
    "too_short": "one entry or more",
    **dict.fromkeys(("dict_type", "model_type", "dataclass_type"), "lines 'key: value'"),
    "path_not_file": "a file that exists",
    "path_not_directory": "a folder that exists",
    "greater_than_equal": "a number of {ge} or more",
}
"""Type of a pydantic error -> what the value needs."""


class NeedError(ValueError):
    """A value is not what its key needs; raised by validators.

    Args:
        need: What the key needs, to follow "needs": "a path".
        got: The part of the value that is wrong. Default: the whole value.
    """

    def __init__(self, need: str, *got: object):
        super().__init__(need)
        self.got = got


class FileModel(BaseModel):
    """Base class of the models of YAML files: lines 'key: value'; unknown keys are errors.

    A field with `exclude=True` is not a key of the file.
    """

    model_config = ConfigDict(frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, values: object) -> object:
        known = [name for name, field in cls.model_fields.items() if not field.exclude]
        for key in values if isinstance(values, dict) else ():
            if key not in known:
                raise ValueError(f"key '{key}' is not known; {nearest(str(key), known)}.")
        return values


Model = TypeVar("Model", bound=BaseModel)


def _target(value: object, info: ValidationInfo) -> str:
    if not isinstance(value, str):
        raise NeedError("a path")
    file: Any = info.context
    try:
        target: str = os.path.normpath(file.parent / Path(value).expanduser())
    except RuntimeError:
        raise NeedError("a path; '~' before a name needs an account of that name") from None
    return target


Target = Annotated[Path, BeforeValidator(_target)]
"""A path, relative to the file's folder; becomes absolute. It need not exist."""
ExistingFile = Annotated[FilePath, BeforeValidator(_target)]
ExistingFolder = Annotated[DirectoryPath, BeforeValidator(_target)]
Text = Annotated[str, Field(pattern=r"\S")]


def choice_validator(known: Collection[str]) -> AfterValidator:
    """Validator of a name that must be one of the known ones; its error suggests the nearest."""

    def check(name: str) -> str:
        if name not in known:
            raise NeedError(f"a known name ({nearest(name, tuple(known))})")
        return name

    return AfterValidator(check)


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    for place, name in enumerate(names):
        if name in names[:place]:
            raise NeedError("each entry once", name)
    return names


EachOnce = AfterValidator(_each_once)
"""Validator of a list without repeated entries."""


class _Loader(yaml.SafeLoader):
    """Refuses aliases, very long values and repeated keys, of which YAML would keep the last."""

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark
            raise yaml.composer.ComposerError(problem="*aliases are not read", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            if isinstance(node, yaml.ScalarNode) and len(node.value) > LONGEST:
                raise ValueError(f"a value of {len(node.value):,} characters")
            return super().construct_object(node, deep)
        except (ArithmeticError, AttributeError, LookupError, ValueError) as error:
            raise yaml.constructor.ConstructorError(
                problem=f"no value that can be read: {error}", problem_mark=node.start_mark
            ) from error

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value]
        for place, name in enumerate(names):
            if name in names[:place]:
                raise yaml.constructor.ConstructorError(
                    problem=f"key '{name}' is given twice",
                    problem_mark=node.value[place][0].start_mark,
                )
        return super().construct_mapping(node, deep)


def parse_yaml(text: str) -> Any:
    """Parse a YAML text of standard types (as `yaml.safe_load` does), from an untrusted source.

    Raises:
        yaml.YAMLError: It is not YAML, or has aliases, a key twice or a value longer than
            `LONGEST` characters. The message is cut to `LONGEST` characters, too.
    """
    try:
        return yaml.load(text, _Loader)
    except (yaml.YAMLError, RecursionError) as problem:
        raise yaml.YAMLError(str(problem)[:LONGEST]) from problem


def read_yaml(path: Path, kind: str, error: type[ValueError]) -> dict[Any, Any]:
    """Read the lines 'key: value' of a YAML file.

    Args:
        path: The file.
        kind: What the file is, for messages: "site file".
        error: Type of the error to raise.

    Returns:
        Key -> value, not validated.

    Raises:
        ValueError: An `error`: the file does not exist or is not YAML, its content is not a
            mapping, or a key is given twice.
    """
    try:
        values = parse_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise error(f"{kind} {path} does not exist.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as problem:
        raise error(f"{kind} {path} cannot be read as YAML: {problem}") from problem
    if not isinstance(values, dict):
        raise error(f"{path}: needs lines 'key: value'; got {one_line(repr(values))}.")
    return values


def read_model(model: type[Model], path: Path, kind: str, error: type[ValueError]) -> Model:
    """Read a YAML file and validate it.

    Args:
        model: A `FileModel` with the keys of the file. Its validators get the absolute path of the
            file as `info.context`.
        path: The file.
        kind: What the file is, for messages: "site file".
        error: Type of the error to raise.

    Raises:
        ValueError: An `error`: see `read_yaml`; or a key is missing or unknown, or its value is
            not valid.
    """
    path = Path(path).absolute()
    values = read_yaml(path, kind, error)
    try:
        return model.model_validate(values, context=path)
    except ValidationError as problem:
        raise error(f"{path}: {describe_error(problem, values)}") from None


def describe_error(problem: ValidationError, values: object) -> str:
    """Describe the first error of a validation in one line: the place, the need, the value.

    Args:
        problem: Raised by pydantic for `values`.
        values: The content of the file.
    """
    return one_line(_description(problem, values))


def _description(problem: ValidationError, values: object) -> str:
    """See `describe_error`; may have several lines."""
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
        known = _NEEDS.get(first["type"], "").format(**context)
        need = known or first["msg"].removeprefix("Input should be ").replace("'", "")
    return f"{place} needs {need}; got {got!r}."
