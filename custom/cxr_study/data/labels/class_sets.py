"""Which classes each site holds: from a file, as published, or drawn from a seed."""

from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from cxr_study.common.spelling import nearest
from cxr_study.data.labels.vocabulary import NIH_CLASSES

ClassSets = tuple[tuple[str, ...], ...]


class ClassSetError(ValueError):
    """There are no such class sets."""


def published(sites: int, shared: int | None = None) -> ClassSets:
    """Class sets of the published ablations, NIH cut into sites.

    Args:
        sites: Number of sites: 2, 3, 4, 5, 6, 8 or 10.
        shared: Number of classes that all sites hold, for four sites only: 0, 1, 2, 4, 8, 12 or
            14. Default: the class sets of the ablation over the number of sites.

    Returns:
        Sorted classes of each site; together all 14.

    Raises:
        ClassSetError: That combination was not published.

    Source:
        Kulkarni et al., ML4H 2024.
    """
    return _choose(_published(), "the published class sets", sites, shared)


def published_sites() -> tuple[int, ...]:
    """Numbers of sites with published class sets of the ablation over that number."""
    return tuple(_published()["clients"])


def read_class_sets(path: Path, sites: int, shared: int | None = None) -> ClassSets:
    """Read class sets from a file of the form of `ml4h2024_class_sets.yaml`.

    Args:
        path: YAML with `clients`, `shared_classes` or both.
        sites: Number of sites.
        shared: As for `published`.

    Raises:
        ClassSetError: The file cannot be read, lacks them, or has a site without classes or with
            one twice; names the file and the place.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ClassSetError(
            f"class sets: {path} does not exist; published and drawn need no file."
        ) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ClassSetError(f"{path} cannot be read as YAML: {error}") from error
    return _choose(content, str(path), sites, shared)


def draw(classes: Sequence[str], sites: int, *, shared: int, seed: int) -> ClassSets:
    """Draw class sets at random: some classes at every site, each of the others at one.

    Args:
        classes: All classes.
        sites: Number of sites.
        shared: Number of classes that every site holds.
        seed: Another seed, other sets.

    Returns:
        Sorted classes of each site; every class is somewhere, and the sites' numbers of classes
        differ by one at most.

    Raises:
        ClassSetError: There are fewer classes than shared ones, or a site would have none.
    """
    rest = len(classes) - shared
    if not 0 <= shared <= len(classes) or (shared == 0 and rest < sites):
        raise ClassSetError(
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
    """Class sets of a study's setting: as published where they are, else drawn.

    Args:
        classes: All classes of the data set that is cut.
        sites: Number of sites.
        shared: Number of classes that every site holds, perhaps all of them. None: the published
            sets for so many sites.
        seed: Another seed, other sets, where they are drawn.

    Raises:
        ClassSetError: They are neither published nor can be drawn.
    """
    if set(classes) == set(NIH_CLASSES):
        try:
            return published(sites, shared)
        except ClassSetError:
            if shared is None:
                raise
    if shared is None:
        raise ClassSetError(
            "class sets are published for the 14 classes of NIH; these are "
            f"{', '.join(sorted(classes))}. Say how many of them every site holds."
        )
    return draw(classes, sites, shared=shared, seed=seed)


@cache
def _published() -> Any:
    source = resources.files(__package__).joinpath("ml4h2024_class_sets.yaml")
    return yaml.safe_load(source.read_text(encoding="utf-8"))


def _choose(content: Any, source: str, sites: int, shared: int | None) -> ClassSets:
    key, number = ("clients", sites) if shared is None else ("shared_classes", shared)
    known = content.get(key) if isinstance(content, dict) else None
    if not isinstance(known, dict) or number not in known:
        has = ", ".join(map(str, known)) if isinstance(known, dict) else "no such key"
        raise ClassSetError(f"{source}, key '{key}': needs {number}; has {has}.")
    sets = known[number]
    where = f"{source}, key '{key}', {number}"
    if not isinstance(sets, list) or len(sets) != sites:
        got = len(sets) if isinstance(sets, list) else repr(sets)
        raise ClassSetError(
            f"{where}: needs a list of classes for each of {sites} sites; got {got}."
        )
    for place, held in enumerate(sets, start=1):
        names = held if isinstance(held, list) else []
        if not names or len(set(names)) < len(names) or not all(isinstance(n, str) for n in names):
            raise ClassSetError(f"{where}, site {place}: needs classes, each once; got {held!r}.")
    return tuple(tuple(sorted(held)) for held in sets)


def check_known(sets: ClassSets, classes: Sequence[str]) -> None:
    """Refuse class sets with a class that the labels do not have.

    Raises:
        ClassSetError: Names the class and the nearest ones.
    """
    for place, held in enumerate(sets, start=1):
        for name in held:
            if name not in classes:
                raise ClassSetError(
                    f"site {place} is to hold '{name}', which these labels do not have; "
                    f"{nearest(name, tuple(classes))}. The published sets are of NIH's classes; "
                    "others can be drawn, or read from a file."
                )
