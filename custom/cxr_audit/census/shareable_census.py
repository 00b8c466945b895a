"""The part of a census that a site may share: no small count, and none that reveals one.

Counts of fewer than `min_count` patients are small, and withheld. Labels are shared as read,
together with the policy for them: a second table could be compared with the first. Not shared are
co-occurring classes, splits, names of images, and pictures.

A site shares counts that add up to a total it shares as well, so a small count withheld alone would
be the total minus the others. Withholding is statistical disclosure control for one release, not
differential privacy: two releases that differ by a few images may reveal something about these, and
two of equal data with another `min_count` a small count.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, Field, PlainValidator, TypeAdapter, ValidationError

from cxr_audit.census.census import (
    AGES,
    OUTCOMES,
    SEXES,
    STATES,
    UNKNOWN,
    VIEW_NAMES,
    CellCount,
    Census,
)
from cxr_audit.census.pixels import BINS, BITS
from cxr_study.common.yaml_files import NeedError, describe_error
from surgical_aggregation.aggregation.class_names import unfit
from surgical_aggregation.aggregation.site_result import LARGEST_COUNT, Limits

FORMAT = 1
"""Version of the JSON file."""
_AGE_SINKS = (UNKNOWN, *AGES[-2::-1])  # the oldest first: they are few
_STATE_SINKS = ("negative", "blank", "not labelled", "uncertain", "positive")


Cells = dict[str, int | None]
"""Name of a cell -> number of images; None where it is withheld."""


class CensusError(ValueError):
    """A shared census cannot be made, or a file does not hold one."""


def _cells(*names: str) -> AfterValidator:
    """Validator of a table: exactly these cells, in this order."""

    def check(cells: Cells) -> Cells:
        if set(cells) != set(names):
            raise NeedError(f"the cells {', '.join(names)}")
        return {name: cells[name] for name in names}

    return AfterValidator(check)


def _few(classes: Mapping[str, object]) -> Mapping[str, object]:
    """Refuse more classes than a site may train."""
    if len(classes) > Limits.site_classes:
        raise NeedError(f"at most {Limits.site_classes} classes", len(classes))
    return classes


def _bins(counts: Sequence[int]) -> Sequence[int]:
    """Refuse a histogram with another number of bins, or an empty one."""
    if len(counts) != BINS:
        raise NeedError(f"{BINS} numbers", len(counts))
    if not any(counts):
        raise NeedError("a number above 0")
    return counts


def _hashes(values: Any) -> np.ndarray:
    """Hashes as uint8 (n, BITS / 8), from hexadecimal texts."""
    try:
        found = np.array([list(bytes.fromhex(text)) for text in values], np.uint8)
    except (TypeError, ValueError) as error:
        raise ValueError(f"needs hashes, hexadecimal: {error}.") from None
    if found.shape != (len(values), BITS // 8):
        raise NeedError(f"hashes of {BITS} bits each")
    return found


def _fit(name: str) -> str:
    """Refuse a text from another site that cannot be a class name."""
    if why := unfit(name):
        raise ValueError(why)
    return name


_Name = Annotated[str, AfterValidator(_fit)]
_Count = Annotated[int, Field(ge=0, le=LARGEST_COUNT, strict=True)]
_Counts = dict[str, _Count | None]


@dataclass(frozen=True)
class SharedClass:
    """The labels of a class as shared.

    Attributes:
        uncertain: What uncertain labels count as.
        read: Labels as read: images by `census.STATES`.
    """

    uncertain: _Name
    read: Annotated[_Counts, _cells(*STATES)]


@dataclass(frozen=True, eq=False)
class SharedCensus:
    """The part of a site's census that others may see, in numbers of images by cell.

    Attributes:
        site: Name of the site.
        min_count: Smallest number of patients behind a count.
        images: Images that are used.
        patients: None where the data set does not identify patients.
        blank: What blank labels count as; None where undecided, because there are none.
        views: View -> images.
        sex: Sex -> images.
        age: Decade -> images.
        classes: Class -> its labels; at most as many as a site may train.
        intensity: Pixels of `pixels.PER` in each bin of grey values; None where not shared.
        image_hashes: See `pixels`, sorted, so that their order reveals nothing; None where not
            shared. Anyone who has a picture can find out from them whether the site has it.
    """

    site: str
    min_count: _Count
    images: _Count
    patients: _Count | None
    blank: _Name | None
    views: Annotated[_Counts, _cells(*VIEW_NAMES)]
    sex: Annotated[_Counts, _cells(*SEXES)]
    age: Annotated[_Counts, _cells(*AGES)]
    classes: Annotated[dict[_Name, SharedClass], AfterValidator(_few)]
    intensity: Annotated[list[_Count], AfterValidator(_bins)] | None = None
    image_hashes: Annotated[np.ndarray, PlainValidator(_hashes)] | None = None

    def to_json(self) -> dict[str, Any]:
        """The census as plain JSON values; `read_shared` reads them.

        Returns:
            The fields, with hashes as hexadecimal texts, and the format's version.
        """
        values = asdict(self) | {"format": FORMAT}
        if self.image_hashes is not None:
            values["image_hashes"] = [row.tobytes().hex() for row in self.image_hashes]
        return values


def share(
    census: Census,
    min_count: int,
    intensity: np.ndarray | None,
    image_hashes: np.ndarray | None = None,
) -> SharedCensus:
    """Make the part of a census that may leave the site.

    Args:
        census: The site's own.
        min_count: Smallest number of patients behind a count, at least 2.
        intensity: Shape (BINS,); see `pixels.measure`. None: it stays at the site.
        image_hashes: Of the images; None: they stay at the site.

    Raises:
        CensusError: The site has fewer patients than that, or `min_count` is less than 2.
    """
    if min_count < 2:
        raise CensusError(f"the smallest count to share needs to be 2 or more; got {min_count}.")
    if census.total.patients < min_count:
        raise CensusError(
            f"site {census.site} shares nothing: it has {census.total.patients} patients, and "
            f"counts of fewer than {min_count} are not shared."
        )
    return SharedCensus(
        site=census.site,
        min_count=min_count,
        images=census.total.images,
        patients=census.total.patients if census.patients_known else None,
        blank=census.blank,
        views=suppress(census.views, min_count, VIEW_NAMES[::-1]),
        sex=suppress(census.sex, min_count, SEXES[::-1]),
        age=suppress(census.age, min_count, _AGE_SINKS),
        classes={
            name: SharedClass(entry.uncertain, suppress(entry.read, min_count, _STATE_SINKS))
            for name, entry in census.classes.items()
        },
        intensity=None if intensity is None else intensity.tolist(),
        image_hashes=None if image_hashes is None else np.unique(image_hashes, axis=0),
    )


def suppress(cells: Mapping[str, CellCount], min_count: int, sinks: Sequence[str]) -> Cells:
    """Withhold the small cells of a table whose total is known.

    A cell is small when it has images, but of fewer than `min_count` patients. If one is, the first
    filled sink is withheld too, and then further ones until at least two are withheld and they sum
    to `min_count` times their number; if the sinks do not suffice, all are. Apart from the small
    cells, the rule depends on known sums only: someone who knows the rule, the total and all shared
    cells can exclude none of the values 1 to `min_count` - 1 for a small cell.

    Args:
        cells: Every image is in exactly one.
        min_count: Smallest number of patients that is shared.
        sinks: All cells in the order in which they may be withheld, the least useful first.

    Returns:
        Cell -> images, or None where withheld.

    Source:
        Complementary cell suppression: Hundepool et al., Statistical Disclosure Control, 2012,
        chapter 4.
    """
    filled = [name for name in sinks if cells[name].images]
    withheld = {name for name in filled if cells[name].patients < min_count}
    if withheld:
        spare = iter(filled)
        withheld.add(next(spare))
        while len(withheld) < 2 or (
            sum(cells[name].images for name in withheld) < min_count * len(withheld)
        ):
            sink = next(spare, None)
            if sink is None:
                return dict.fromkeys(cells)
            withheld.add(sink)
    return {name: None if name in withheld else tally.images for name, tally in cells.items()}


def read_shared(path: Path) -> SharedCensus:
    """Read a shared census.

    Args:
        path: A file of the folder `shared` that `write_audit` writes.

    Raises:
        CensusError: The file does not hold a shared census; names file and place.
    """
    try:
        values = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CensusError(f"{path} cannot be read as a shared census: {error}.") from error
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise CensusError(
            f"{path}: needs a shared census, with 'format': {FORMAT}; this is something else."
        )
    return checked(values, str(path))


def checked(values: dict[str, Any], whose: str) -> SharedCensus:
    """Validate a shared census from plain values.

    Args:
        values: As `SharedCensus.to_json` returns them.
        whose: Whose it is, for the error.

    Raises:
        CensusError: They are not those of a census; names the place.
    """
    try:
        return TypeAdapter(SharedCensus).validate_python(values)
    except ValidationError as problem:
        raise CensusError(f"{whose}: {describe_error(problem, values)}") from None


def outcomes(census: SharedCensus, class_name: str) -> Cells:
    """Labels of a class after the policy.

    Withheld labels that all have the same outcome are the total minus all others.

    Args:
        census: What a site shares.
        class_name: One of its classes.

    Returns:
        Outcome of `census.OUTCOMES` -> images; None where withheld.
    """
    entry = census.classes[class_name]
    becomes = {state: outcome(state, entry.uncertain, census.blank) for state in STATES}
    withheld = {becomes[state] for state, images in entry.read.items() if images is None}
    after: Cells = dict.fromkeys(withheld)
    for name in set(OUTCOMES) - withheld:
        after[name] = sum(n or 0 for state, n in entry.read.items() if becomes[state] == name)
    if len(withheld) == 1:
        after[withheld.pop()] = census.images - sum(n or 0 for n in after.values())
    return {name: after[name] for name in OUTCOMES}


def outcome(state: str, uncertain: str, blank: str | None) -> str:
    """The outcome of a label under a policy.

    Args:
        state: Label as read, of `census.STATES`.
        uncertain: What uncertain labels count as, e.g. "zeros".
        blank: What blank labels count as; None: undecided.

    Returns:
        One of `census.OUTCOMES`.
    """
    if state == "blank":
        return "negative" if blank == "negative" else "not labelled"
    if state == "uncertain":
        fixed = {"zeros": "negative", "ones": "positive", "ignore": "not labelled"}
        return fixed.get(uncertain, "soft")
    return state


def prevalence(census: SharedCensus, class_name: str) -> float | None:
    """Share of the labelled images of a class that are positive.

    Args:
        census: What a site shares.
        class_name: One of its classes.

    Returns:
        None where a count is withheld, or no image is labelled.
    """
    after = outcomes(census, class_name)
    positive, unlabelled = after["positive"], after["not labelled"]
    if positive is None or unlabelled is None or census.images == unlabelled:
        return None
    return positive / (census.images - unlabelled)
