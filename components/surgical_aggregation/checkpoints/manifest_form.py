"""What a manifest must be where this software reads it; all else in it is anybody's."""

from __future__ import annotations

from types import GenericAlias
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, create_model


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("printable text in one line")
    return text


Text = Annotated[str, AfterValidator(_printable)]
Count = Annotated[int, Field(strict=True, ge=0, lt=2**31)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Names = list[Text]


def _facts(needs: dict[str, Any], has: dict[str, Any]) -> Any:
    """Facts by name, some of them needed; any that are not named here may be there as well."""
    fields: Any = {**needs, **{name: (form, None) for name, form in has.items()}}
    return create_model("facts", **fields)


_CLASS = _facts({}, {
    "sites": Names, "last_round": Count | None, "rounds": list[tuple[Count, Count, Names]],
    "lacking": dict[Text, Literal["positive", "negative"]],
    "imported": _facts({"model_sha256": Text}, {}),
})  # fmt: skip
_COUNTS = ("round", "planned_rounds", "not_compared", "head_features", "hidden")
_TEXTS = ("job", "candidate", "created", "version", "strategy", "site", "backbone")
_MODEL = _facts({}, {
    **dict.fromkeys(_COUNTS, Count), **dict.fromkeys(_TEXTS, Text),
    **dict.fromkeys(("best", "best_of_rounds"), _facts({"round": Count}, {"value": Number})),
    **dict.fromkeys(("features", "input"), dict[Text, Any]),
    "image_size": Annotated[int, Field(strict=True, ge=1, le=8192)],
    "initial_body_sha256": Text | None,
    "variable_kinds": _facts({"batch_norm": Names, "constant": Names}, {}),
    "classes": GenericAlias(dict, (Text, _CLASS)),
    "contributed": dict[Text, list[tuple[Count, Count]]],
    "removed": dict[Text, dict[Text, Any]],
    "versions": dict[Text, dict[Text, Text]],
    "history": GenericAlias(list, (_facts({"job": Text, "rounds": tuple[Count, Count]}, {}),)),
    "validation": _facts({"round": Count, "auroc": dict[Text, dict[Text, Number]]}, {}),
})  # fmt: skip


def fault(manifest: dict[str, Any]) -> str | None:
    """The first reason why a model's manifest cannot be used; None: it can."""
    try:
        _MODEL.model_validate(manifest)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        place = "".join(f"{part}: " for part in first["loc"])
        need = first["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
        return f"its manifest: {place}needs {need}; got {first['input']!r}"
    return None
