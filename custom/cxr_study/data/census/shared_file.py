"""Reads what a site shared."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cxr_study.data.census.census import AGES, SEXES, STATES, VIEW_NAMES
from cxr_study.data.census.pixels import BINS, SIDE, Moments
from cxr_study.data.census.shareable_census import FORMAT, CensusError, SharedCensus, SharedClass
from cxr_study.data.census.suppression import Cells


def read_shared(path: Path) -> SharedCensus:
    """Read what a site shared: a file that `write_audit` puts into its folder `shared`.

    Raises:
        CensusError: The file does not hold a shared census; names file and place.
    """
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CensusError(f"{path} cannot be read as a shared census: {error}.") from error
    try:
        return from_json(values)
    except CensusError as error:
        raise CensusError(f"{path}: {error}") from None


def from_json(values: Any) -> SharedCensus:
    """Read plain JSON values; see `SharedCensus.to_json`.

    Raises:
        CensusError: They do not have the documented form.
    """
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise CensusError(
            f"needs a shared census, with 'format': {FORMAT}; this is something else."
        )
    missing = {"site", "min_count", "images", "patients", "blank", "classes"} - set(values)
    if missing:
        raise CensusError(f"needs {', '.join(sorted(missing))}; the file has no such key.")
    if not isinstance(values["classes"], dict):
        raise CensusError(f"classes needs one entry per class; got {values['classes']!r}.")
    intensity = values.get("intensity")
    if intensity is not None:
        intensity = [_number(n, f"intensity[{i}]") for i, n in enumerate(intensity)]
        if len(intensity) != BINS:
            raise CensusError(f"intensity needs {BINS} numbers; got {len(intensity)}.")
    classes = {}
    for name, entry in values["classes"].items():
        if not isinstance(entry, dict) or not isinstance(entry.get("uncertain"), str):
            raise CensusError(f"classes.{name} needs 'uncertain' and 'read'; got {entry!r}.")
        read = _cells(entry.get("read"), f"classes.{name}.read", tuple(STATES))
        classes[name] = SharedClass(entry["uncertain"], read)
    return SharedCensus(
        site=str(values["site"]),
        min_count=_number(values["min_count"], "min_count"),
        images=_number(values["images"], "images"),
        patients=None if values["patients"] is None else _number(values["patients"], "patients"),
        blank=values["blank"],
        views=_cells(values.get("views"), "views", VIEW_NAMES),
        sex=_cells(values.get("sex"), "sex", SEXES),
        age=_cells(values.get("age"), "age", AGES),
        classes=classes,
        intensity=intensity,
        features=_moments(values.get("features")),
    )


def _number(value: object, key: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise CensusError(f"{key} needs a whole number, 0 or more; got {value!r}.")
    return value


def _cells(values: object, key: str, names: Sequence[str]) -> Cells:
    if not isinstance(values, dict) or set(values) != set(names):
        raise CensusError(f"{key} needs the cells {', '.join(names)}; got {values!r}.")
    return {
        name: None if values[name] is None else _number(values[name], f"{key}.{name}")
        for name in names
    }


def _moments(values: Any) -> Moments | None:
    if values is None:
        return None
    try:
        images = _number(values["images"], "features.images")
        mean, covariance = (np.array(values[key], float) for key in ("mean", "covariance"))
    except (KeyError, TypeError, ValueError) as error:
        raise CensusError(f"features needs 'images', 'mean' and 'covariance': {error}.") from None
    pixels = SIDE * SIDE
    if mean.shape != (pixels,) or covariance.shape != (pixels, pixels):
        raise CensusError(
            f"features need shapes ({pixels},) and ({pixels}, {pixels}); got {mean.shape} and "
            f"{covariance.shape}."
        )
    if not (np.isfinite(mean).all() and np.isfinite(covariance).all()):
        raise CensusError("features need finite numbers.")
    return Moments(images, mean, covariance)
