"""What a manifest must be where this software reads it; all else in it is anybody's."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

LARGEST = 2**26
"""Bytes that a manifest may have; the statistics of features are most of one."""


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("needs printable text in one line")
    return text


Text = Annotated[str, AfterValidator(_printable)]
Count = Annotated[int, Field(ge=0, lt=2**31)]
Share = Annotated[float, Field(ge=0, le=1)]
_MISSING: Any = None  # may be, but not null


class _Facts(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)


class _Kinds(_Facts):
    batch_norm: list[Text]
    constant: list[Text]


class _Imported(_Facts):
    model_sha256: Text
    round: Count | None = None
    created: Text | None = None
    auroc: dict[Text, Share] = {}


class _Class(_Facts):
    sites: list[Text]
    last_round: Count | None = None
    rounds: list[Annotated[tuple[Count, Count, list[Text]], Field(strict=False)]] = []
    imported: _Imported | None = None


class _Validation(_Facts):
    round: Count
    auroc: dict[Text, dict[Text, Share]]


class _Best(_Facts):
    round: Count
    metric: Text | None = None
    value: float | None = None
    sites: dict[Text, float] = {}
    classes: dict[Text, list[Text]] = {}
    columns: list[Text] = []


class _Earlier(_Facts):
    job: Text
    rounds: Annotated[tuple[Count, Count], Field(strict=False)]


class _Removed(_Facts):
    round: Count
    sites: list[Text]


class _Manifest(_Facts):
    head_features: Count = _MISSING
    variable_kinds: _Kinds = _MISSING
    classes: dict[Text, _Class] = {}
    round: Count = _MISSING
    planned_rounds: Count = _MISSING
    not_compared: Count = _MISSING
    job: Text = _MISSING
    history: list[_Earlier] = []
    best: _Best = _MISSING
    best_of_rounds: _Best = _MISSING
    candidate: Text | None = None
    removed: dict[Text, _Removed] = {}
    validation: _Validation = _MISSING
    features: dict[Text, Any] = {}
    initial_body_sha256: Text | None = None
    created: Text | None = None
    version: Text | None = None
    strategy: Text | None = None
    site: Text | None = None
    backbone: Text = _MISSING
    hidden: Count = _MISSING
    image_size: Count = _MISSING
    input: dict[Text, Any] = {}


def parsed(text: bytes) -> dict[str, Any]:
    """A manifest of JSON, nested 200 deep at most; raises ValueError where it is none."""
    facts = from_json(text)
    if not isinstance(facts, dict):
        raise ValueError(f"needs facts by name; got {facts!r}")
    return facts


def fault(manifest: dict[str, Any]) -> str | None:
    """The first reason why a model's manifest cannot be used; None: it can."""
    try:
        _Manifest.model_validate(manifest)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        place = "".join(f"{part}: " for part in first["loc"])
        need = first["msg"].removeprefix("Input should be ").removeprefix("Value error, needs ")
        return f"{place}needs {need}; got {first['input']!r}"
    return None
