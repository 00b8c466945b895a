"""Merge columns of a label table into classes: key `merges` of a site file.

    merges:
      Fracture: [Clavicle fracture, Rib fracture]   # parts: positive if one of them is
      Nodule: [Nodule/Mass]                         # broader than the class: only negatives count
      Pleural Effusion: [Effusion]                  # another name

The merged class replaces its sources. An existing column with its name is one of the sources.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from cxr_study.common.errors import InputError
from cxr_study.common.spelling import key, nearest
from cxr_study.data.labels.label_table import (
    BLANK,
    DESCRIPTORS,
    LOADED,
    NEGATIVE,
    POSITIVE,
    UNCERTAIN,
    classes,
)
from cxr_study.data.labels.vocabulary import catalogue, class_name, relation


def apply(table: pd.DataFrame, merges: Mapping[str, Sequence[str]], dataset: str) -> pd.DataFrame:
    """Merge columns of a label table as read.

    For each image, the merged label is the first of these that one of its sources has:

        positive, uncertain, not labelled (NaN), blank, negative

    It is negative only if all sources are. Blank precedes negative, so that the site's policy for
    blanks has the same effect after a merge as before. If a source is broader than the class, its
    positive and uncertain labels do not determine the class, and become not labelled: such a merge
    has no positive label.

    A merged class takes the place of the column with its name, else of its first source.

    Args:
        table: Label table as read; stays unchanged.
        merges: Class -> its sources, in any spelling that the data set or the catalogue knows.
        dataset: Data set of the table.

    Returns:
        The label table with merged columns, and the same notes.

    Raises:
        InputError: A source is not a column, the catalogue forbids merging two of the names, or
            the merges contradict each other.
    """
    columns = classes(table)
    plan = _plan(columns, merges, dataset)
    _check(columns, plan)
    merged: dict[str, dict[str, np.ndarray]] = {}  # column it replaces -> target -> labels
    for target, sources in plan.items():
        own = [target] if target in columns else []
        labels = table[own + sources].to_numpy(float)
        if _broader(sources[0], target):
            labels = np.where((labels == POSITIVE) | (labels == UNCERTAIN), np.nan, labels)
        place = (own or sorted(sources, key=columns.index))[0]
        merged.setdefault(place, {})[target] = _any(labels)
    gone = {source for sources in plan.values() for source in sources}
    result: dict[str, pd.Series | np.ndarray] = {}
    for name in table.columns:
        if name in merged:
            result |= merged[name]
        elif name not in gone:
            result[name] = table[name]
    merged_table: pd.DataFrame = pd.DataFrame(result)
    merged_table.attrs = table.attrs
    return merged_table


def contradicting_parts(table: pd.DataFrame, blank_is_negative: bool) -> dict[str, dict[str, int]]:
    """Count images that are negative for a class and positive for a part of it.

    Parts are the narrower classes of the catalogue, such as rib fracture for Fracture.

    Args:
        table: Label table as read.
        blank_is_negative: Whether a blank label of the class counts as negative.

    Returns:
        Class -> part -> number of such images, where it is not 0.
    """
    columns = set(classes(table))
    found: dict[str, dict[str, int]] = {}
    for entry in catalogue():
        wider, part = entry.canonical, entry.name
        if entry.relation == "broader":
            wider, part = part, wider
        if entry.relation not in ("narrower", "broader") or not {wider, part} <= columns:
            continue
        absent = (table[wider] == NEGATIVE) | ((table[wider] == BLANK) & blank_is_negative)
        if number := int((absent & (table[part] == POSITIVE)).sum()):
            found.setdefault(wider, {})[part] = number
    return found


def _any(labels: np.ndarray) -> np.ndarray:
    """Merge labels of shape (n, sources) into shape (n,)."""
    states = [
        (labels == POSITIVE, POSITIVE),
        (labels == UNCERTAIN, UNCERTAIN),
        (np.isnan(labels), np.nan),
        (labels == BLANK, BLANK),
    ]
    found = [state.any(axis=1) for state, _ in states]
    return np.select(found, [label for _, label in states], default=NEGATIVE)


def _plan(
    columns: Sequence[str], merges: Mapping[str, Sequence[str]], dataset: str
) -> dict[str, list[str]]:
    """Target -> sources in the spelling of the columns; a target is not its own source."""
    spelt = {key(column): column for column in columns}
    targets = {key(class_name(given, dataset)) for given in merges}
    plan: dict[str, list[str]] = {}
    for given, names in merges.items():
        target = class_name(given, dataset)
        target = spelt.get(key(target), target)
        if key(target) in map(key, plan):
            raise InputError(f"'{target}' is given twice; put its sources in one list.")
        sources = []
        for name in names:
            folded = key(class_name(name, dataset))
            if folded in targets - {key(target)}:
                raise InputError(
                    f"'{name}' is merged into '{target}' and is itself a merge; give '{target}' "
                    f"the source columns of '{name}'."
                )
            source = spelt.get(folded)
            if source is None:
                raise InputError(
                    f"'{target}' needs columns that dataset '{dataset}' has; got "
                    f"'{name}', {nearest(name, columns)}."
                )
            if source in sources:
                raise InputError(f"'{target}' names '{source}' twice; once is enough.")
            sources.append(source)
        plan[target] = [source for source in sources if source != target]
        if not plan[target]:
            raise InputError(f"'{target}' needs at least one other column.")
    return plan


def _check(columns: Sequence[str], plan: Mapping[str, Sequence[str]]) -> None:
    """Refuse merges that the catalogue forbids or that contradict each other."""
    users: dict[str, list[str]] = {}  # source -> targets
    for target, sources in plan.items():
        if target in DESCRIPTORS + LOADED:
            raise InputError(f"'{target}' is a column of every label table, not a class.")
        for one, other in combinations([target, *sources], 2):
            entry = relation(one, other)
            if entry is not None and entry.relation == "never":
                raise InputError(
                    f"'{one}' and '{other}' must not be merged, here into "
                    f"'{target}': {entry.provenance}. Keep them apart."
                )
        for source in sources:
            users.setdefault(source, []).append(target)
            if _broader(source, target) and (len(sources) > 1 or target in columns):
                raise InputError(
                    f"'{source}' contains more than '{target}', so it must be its "
                    "only source; it cannot be merged with other columns."
                )
    for source, targets in users.items():
        strangers = [target for target in targets if relation(source, target) is None]
        if len(targets) > 1 and strangers:
            raise InputError(
                f"'{source}' is merged into {' and '.join(targets)}; a column may "
                "serve two classes only where the catalogue relates it to both, and it does not "
                f"relate it to '{strangers[0]}'."
            )


def _broader(source: str, target: str) -> bool:
    """Whether the catalogue lists a source as broader than the class it is merged into."""
    entry = relation(source, target)
    return entry is not None and entry.relation == "broader"
