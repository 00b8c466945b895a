"""Which classes each site labels: from a file, as published, or drawn at random.

A class set is the sorted tuple of the classes that a site labels; `ClassSets` has one for each
site of a data set that is cut.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from cxr_study.common.errors import InputError
from cxr_study.common.spelling import nearest
from cxr_study.common.yaml_files import FileModel, NeedError, read_model
from cxr_study.data.labels.vocabulary import NIH_CLASSES

ClassSets = tuple[tuple[str, ...], ...]


def _sorted(labelled: tuple[str, ...]) -> tuple[str, ...]:
    """The classes of a site in alphabetical order; refuses none, and one twice."""
    if not labelled or len(set(labelled)) < len(labelled):
        raise NeedError("classes, each once")
    return tuple(sorted(labelled))


_Labelled = Annotated[tuple[str, ...], AfterValidator(_sorted)]


class _ClassSetFile(FileModel):
    """A file of class sets: number of sites, or of shared classes -> classes of each site."""

    clients: dict[int, tuple[_Labelled, ...]] = Field(default_factory=dict)
    shared_classes: dict[int, tuple[_Labelled, ...]] = Field(default_factory=dict)


def published(sites: int, shared: int | None = None) -> ClassSets:
    """Class sets of the published ablations of NIH cut into sites (Kulkarni et al., ML4H 2024).

    Args:
        sites: Number of sites: 2, 3, 4, 5, 6, 8 or 10.
        shared: Number of classes that all sites label, for four sites only: 0, 1, 2, 4, 8, 12 or
            14. Default: the class sets of the ablation over the number of sites.

    Returns:
        Sorted classes of each site; together all 14.
    """
    return _choose(_published(), "the published class sets", sites, shared)


def published_sites() -> tuple[int, ...]:
    """Numbers of sites of the published ablation."""
    return tuple(_published().clients)


def read_class_sets(path: Path, sites: int, shared: int | None = None) -> ClassSets:
    """Read class sets from a file like `ml4h2024_class_sets.yaml`.

    Args:
        path: YAML file with the key `clients` or `shared_classes`, or both.
        sites: Number of sites.
        shared: Number of classes that all sites label. None: those of the key `clients`.

    Returns:
        Sorted classes of each site.

    Raises:
        InputError: The file cannot be read, lacks them, or has a site without classes or with
            one twice.
    """
    kind = "file of class sets (published and drawn ones need none)"
    return _choose(read_model(_ClassSetFile, path, kind, InputError), str(path), sites, shared)


def draw(classes: Sequence[str], sites: int, *, shared: int, seed: int) -> ClassSets:
    """Draw class sets: `shared` random classes at every site, each of the others at one.

    Args:
        classes: All classes of the data set; their order does not matter.
        sites: Number of sites.
        shared: Number of classes that every site labels.
        seed: Of the draw.

    Returns:
        Sorted classes of each site; all classes occur, and the sites' numbers of classes differ
        by one at most.

    Raises:
        InputError: There are fewer classes than `shared`, or than sites where none is shared.
    """
    if not 0 <= shared <= len(classes) or (shared == 0 and len(classes) < sites):
        raise InputError(
            f"{sites} sites need a class each and at most {len(classes)} shared ones; got "
            f"{len(classes)} classes, {shared} of them shared."
        )
    import numpy as np  # published class sets need none

    order = np.random.default_rng(seed).permutation(sorted(classes)).tolist()
    common, dealt = order[:shared], order[shared:]
    return tuple(tuple(sorted(common + dealt[site::sites])) for site in range(sites))


def class_sets_of(
    classes: Sequence[str], sites: int, *, shared: int | None, seed: int
) -> ClassSets:
    """Class sets of a study's scenario: the published ones where there are any, else drawn.

    Args:
        classes: All classes of the data set that is cut.
        sites: Number of sites.
        shared: Number of classes that every site labels. None: as published for so many sites.
        seed: Of the draw.

    Returns:
        Sorted classes of each site.

    Raises:
        InputError: They are neither published nor can be drawn.
    """
    of_nih, file = set(classes) == set(NIH_CLASSES), _published()
    if of_nih and (shared is None or len(file.shared_classes.get(shared, ())) == sites):
        return published(sites, shared)
    if shared is None:
        raise InputError(
            "class sets are published for the 14 classes of NIH; these are "
            f"{', '.join(sorted(classes))}. Give the number of classes that every site labels."
        )
    return draw(classes, sites, shared=shared, seed=seed)


@cache
def _published() -> _ClassSetFile:
    """The shipped file of class sets, read once."""
    path = Path(__file__).with_name("ml4h2024_class_sets.yaml")
    return read_model(_ClassSetFile, path, "file of class sets", InputError)


def _choose(file: _ClassSetFile, source: str, sites: int, shared: int | None) -> ClassSets:
    """The class sets of a file for so many sites; `source` names the file in messages."""
    key, number = ("clients", sites) if shared is None else ("shared_classes", shared)
    known: dict[int, ClassSets] = getattr(file, key)
    if number not in known:
        has = ", ".join(map(str, known)) or "none"
        raise InputError(f"{source}, key '{key}': needs {number}; has {has}.")
    if len(known[number]) != sites:
        raise InputError(
            f"{source}, key '{key}', {number}: needs a list of classes for each of {sites} sites; "
            f"got {len(known[number])}."
        )
    return known[number]


def check_known(sets: ClassSets, classes: Sequence[str]) -> None:
    """Refuse class sets with a class that the labels do not have.

    Args:
        sets: Classes of each site.
        classes: Those that the labels have.

    Raises:
        InputError: A class is not among `classes`; the message has the nearest name.
    """
    for place, labelled in enumerate(sets, start=1):
        for name in labelled:
            if name not in classes:
                raise InputError(
                    f"site {place} is to label '{name}', which these labels do not have; "
                    f"{nearest(name, tuple(classes))}. The published sets are of NIH's classes; "
                    "others can be drawn, or read from a file."
                )
