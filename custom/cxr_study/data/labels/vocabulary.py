"""The names of the classes: one canonical spelling each, and what every data set calls them.

Spellings of the 20 classes of the study follow Kulkarni et al., ML4H 2024. All that is known beyond
them stands in `vocabulary.csv`, one row per spelling and relation:

    dataset     nih, chexpert, mimic, cxr-lt, vindr or padchest: whose spelling it is; * for any
    name        the spelling
    canonical   the class it is related to, in its canonical spelling
    relation    exact     the same class: in this data set the name stands for it
                narrower  a part of the class: may be merged into it, where a site file says so
                broader   contains the class: may be merged into it likewise, where only a negative
                          label says something
                never     resembles the class and must not be merged with it
    provenance  where that was seen; for `never`, the reason

A name that is narrower or broader than a class is a class of its own, spelt as it stands there.
The relations are those of SKOS (exactMatch, narrowMatch, broadMatch).
"""

import csv
import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from cxr_study.common.spelling import key, near, nearest

SHARED = (
    "Atelectasis",
    "Cardiomegaly",
    "Consolidation",
    "Edema",
    "Pleural Effusion",
    "Pneumonia",
    "Pneumothorax",
)
_NIH_ONLY = (
    "Emphysema",
    "Fibrosis",
    "Hernia",
    "Infiltration",
    "Mass",
    "Nodule",
    "Pleural Thickening",
)
_CHEXPERT_ONLY = (
    "Enlarged Cardiomediastinum",
    "Fracture",
    "Lung Lesion",
    "Lung Opacity",
    "Pleural Other",
    "Support Devices",
)
NIH_CLASSES = tuple(sorted(SHARED + _NIH_ONLY))
CHEXPERT_CLASSES = tuple(sorted(SHARED + _CHEXPERT_ONLY))
UNION_CLASSES = tuple(sorted(SHARED + _NIH_ONLY + _CHEXPERT_ONLY))
PADCHEST_CLASSES = tuple(name for name in NIH_CLASSES if name != "Hernia")
"""The classes of the study that PadChest names itself; the rest would have to be merged."""
VINDR_NAMES = (
    *("Aortic enlargement", "Atelectasis", "Calcification", "Cardiomegaly", "Clavicle fracture"),
    *("Consolidation", "Edema", "Emphysema", "Enlarged PA", "ILD", "Infiltration", "Lung Opacity"),
    *("Lung cavity", "Lung cyst", "Mediastinal shift", "Nodule/Mass", "Pleural effusion"),
    *("Pleural thickening", "Pneumothorax", "Pulmonary fibrosis", "Rib fracture", "Other lesion"),
    *("COPD", "Lung tumor", "Pneumonia", "Tuberculosis", "Other diseases"),
)
"""VinDr's own names of its 27 classes, in the order of its csv."""

Relation = Literal["exact", "narrower", "broader", "never"]
_CATALOGUE = Path(__file__).with_name("vocabulary.csv")
_LOOK_ALIKE = 0.85  # edit ratio: Oedema and Edema 0.91, Pneumonitis and Pneumonia 0.80


class VocabularyError(ValueError):
    """A name is not the name of a class."""


@dataclass(frozen=True)
class Entry:
    """A row of the catalogue; the head of this module says what its columns mean."""

    dataset: str
    name: str
    canonical: str
    relation: Relation
    provenance: str


@cache
def catalogue() -> tuple[Entry, ...]:
    """Return the rows of `vocabulary.csv`, in its order."""
    with _CATALOGUE.open(encoding="utf-8", newline="") as file:
        return tuple(Entry(**row) for row in csv.DictReader(file))  # type: ignore[arg-type]


def canonical(name: str, dataset: str | None = None) -> str:
    """Return the canonical spelling of a class name.

    Args:
        name: Class name in any case, its words separated by any of "_", " ", "/" and "-".
        dataset: Data set the name comes from; its own names for a class then count too, e.g.
            "Effusion" for nih. Default None: canonical names alone, because the "Effusion" of
            another hospital may be a pericardial one.

    Returns:
        A member of `UNION_CLASSES`, or another class of the catalogue.

    Raises:
        VocabularyError: No class has this name; the message offers the nearest ones.
    """
    try:
        return _names(dataset)[key(name)]
    except KeyError:
        own = (entry.name for entry in catalogue() if entry.dataset == dataset)
        close = near(name, (*UNION_CLASSES, *own)) or UNION_CLASSES
        raise VocabularyError(
            f"'{name}' is not the name of a class; {nearest(name, close)}"
        ) from None


def class_name(name: str, dataset: str | None = None) -> str:
    """Return the canonical spelling of a class name, or the name itself where there is none."""
    return _names(dataset).get(key(name), name)


def is_class(name: str) -> bool:
    """Return whether a name is the canonical name of a class of the catalogue."""
    return _names(None).get(key(name)) == name


def relation(name: str, other: str) -> Entry | None:
    """Return what the catalogue says about two classes, whatever data sets they are from.

    Args:
        name: Canonical name of a class.
        other: Canonical name of the class it might be merged into.

    Returns:
        The entry that says `name` is narrower or broader than `other`, or that the two must never
        be merged; None where there is no such entry.
    """
    return _relations().get((key(name), key(other)))


def resemblance(name: str, other: str) -> str | None:
    """Say in what a name that the catalogue does not know resembles another one.

    Args:
        name: The name.
        other: A class.

    Returns:
        The reason in words; None where they do not resemble each other.
    """
    for entry in catalogue():
        if entry.relation == "exact" and entry.canonical == other and key(entry.name) == key(name):
            return f"dataset '{entry.dataset}' calls {other} so"
    words, others = _words(name), _words(other)
    if words == others:
        return "the same words"
    if words and others and (words < others or others < words):
        return "one contains the other"
    if difflib.SequenceMatcher(None, key(name), key(other)).ratio() >= _LOOK_ALIKE:
        return "nearly the same spelling"
    return None


def _words(name: str) -> frozenset[str]:
    """Folded words of a name, in the singular."""
    words = re.findall(r"\w+", key(name))
    return frozenset(re.sub("(?<=ss)es$|(?<=[^s])s$", "", word) for word in words)


@cache
def _names(dataset: str | None) -> Mapping[str, str]:
    """Folded name -> canonical name: of every class, and of what the data set calls them."""
    names = {key(name): name for name in UNION_CLASSES}
    for entry in catalogue():
        if entry.relation != "never":
            names.setdefault(key(entry.canonical), entry.canonical)
        if entry.relation in ("narrower", "broader"):
            names.setdefault(key(entry.name), entry.name)
    return names | {
        key(entry.name): entry.canonical
        for entry in catalogue()
        if entry.relation == "exact" and entry.dataset == dataset
    }


@cache
def _relations() -> Mapping[tuple[str, str], Entry]:
    pairs = {}
    for entry in catalogue():
        name, other = key(entry.name), key(entry.canonical)
        if entry.relation != "exact":
            pairs[name, other] = entry
        if entry.relation == "never":
            pairs[other, name] = entry
    return pairs
