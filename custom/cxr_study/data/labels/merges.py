"""Merges: columns of a label table that a site merges, key `merges` of its site file.

    merges:
      Fracture: [Clavicle fracture, Rib fracture]   # parts: positive where one of them is
      Nodule: [Nodule/Mass]                         # more than the class: only its negatives count
      Pleural Effusion: [Effusion]                  # another name

The merged class replaces its sources; an existing column of its name is one of them.
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

    Image by image, the merged label is the first of these that one of its sources is:

        positive, uncertain, not labelled (NaN), blank, negative

    so it is negative only where all of them are. Blank comes before negative because the merged
    label then becomes what the sources would have become, whatever the site makes of blanks.
    Where a source is broader than the class, its positive and uncertain labels do not tell whether
    it is this class, and become not labelled: such a merge has no positive label.

    A merged class stands where the column of its name did, else where the first of its sources did.

    Args:
        table: Label table as read.
        merges: Class -> its sources, in any spelling that the data set or the catalogue knows.
        dataset: Data set of the table.

    Raises:
        InputError: A source is not a column, the catalogue says that two of the names must never
            be merged, or one column is asked to be two things.
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
    whole = pd.DataFrame(result)
    whole.attrs = table.attrs
    return whole


def parts_against(table: pd.DataFrame, blank_is_negative: bool) -> dict[str, dict[str, int]]:
    """Images that are negative for a class and positive for what the catalogue calls a part of it.

    Args:
        table: Label table as read.
        blank_is_negative: Whether a blank label of the class counts as negative.

    Returns:
        Class -> its parts that have such images -> how many.
    """
    columns = set(classes(table))
    found: dict[str, dict[str, int]] = {}
    for entry in catalogue():
        whole, part = entry.canonical, entry.name
        if entry.relation == "broader":
            whole, part = part, whole
        if entry.relation not in ("narrower", "broader") or not {whole, part} <= columns:
            continue
        absent = (table[whole] == NEGATIVE) | ((table[whole] == BLANK) & blank_is_negative)
        if number := int((absent & (table[part] == POSITIVE)).sum()):
            found.setdefault(whole, {})[part] = number
    return found


def _any(labels: np.ndarray) -> np.ndarray:
    """Merge labels of shape (n, sources) to shape (n,)."""
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
    """Every merge in the spelling of the columns; a target is not among its own sources."""
    spelt = {key(column): column for column in columns}
    targets = {key(class_name(given, dataset)) for given in merges}
    plan: dict[str, list[str]] = {}
    for given, names in merges.items():
        target = class_name(given, dataset)
        target = spelt.get(key(target), target)
        if key(target) in map(key, plan):
            raise InputError(f"'{target}' stands twice; put its sources in one list.")
        sources = []
        for name in names:
            folded = key(class_name(name, dataset))
            if folded in targets - {key(target)}:
                raise InputError(
                    f"'{name}' is merged into '{target}' and is a merge itself; give "
                    f"'{target}' the columns that '{name}' is made of."
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
    users: dict[str, list[str]] = {}  # source -> targets
    for target, sources in plan.items():
        if target in DESCRIPTORS + LOADED:
            raise InputError(f"'{target}' is a column of every label table, no class.")
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
    entry = relation(source, target)
    return entry is not None and entry.relation == "broader"
