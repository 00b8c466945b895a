"""Class names: one canonical spelling each, and the names that data sets use for them.

Spellings of the study's 20 classes follow Kulkarni et al., ML4H 2024. All others are in the
catalogue, `vocabulary.csv`: one row per spelling and relation. The first three relations
correspond to SKOS's exactMatch, narrowMatch and broadMatch.

    dataset     data set with this spelling: nih, chexpert, mimic, cxr-lt, vindr or padchest; * for
                any; for an alias its language: en, de, fr, es or zh
    name        the spelling
    canonical   the class it is related to, in its canonical spelling
    relation    exact     the same class: this data set's name for it
                narrower  a part of the class: merged into it if a site file requests it
                broader   contains the class: merged into it if a site file requests it; only a
                          negative label is informative then
                never     resembles the class and must not be merged with it
                alias     what radiologists call one of the 20 classes: a suggestion only; the name
                          is translated only if a site file merges it
    provenance  source of the entry; for `never`, the reason

A narrower or broader name is a separate class, with the spelling of the catalogue.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from cxr_study.common.spelling import key, near_names
from surgical_aggregation.aggregation import class_names

SHARED = (
    *("Atelectasis", "Cardiomegaly", "Consolidation", "Edema"),
    *("Pleural Effusion", "Pneumonia", "Pneumothorax"),
)
_NIH_ONLY = (
    *("Emphysema", "Fibrosis", "Hernia", "Infiltration", "Mass", "Nodule"),
    "Pleural Thickening",
)
_CHEXPERT_ONLY = (
    *("Enlarged Cardiomediastinum", "Fracture", "Lung Lesion", "Lung Opacity"),
    *("Pleural Other", "Support Devices"),
)
NIH_CLASSES = tuple(sorted(SHARED + _NIH_ONLY))
"""The 14 classes of NIH ChestX-ray14."""
CHEXPERT_CLASSES = tuple(sorted(SHARED + _CHEXPERT_ONLY))
"""The 13 classes of CheXpert and MIMIC, without "No Finding"."""
UNION_CLASSES = tuple(sorted(SHARED + _NIH_ONLY + _CHEXPERT_ONLY))
"""The 20 classes of the study: the union of the two."""
PADCHEST_CLASSES = tuple(name for name in NIH_CLASSES if name != "Hernia")
"""The classes of the study for which PadChest has a name."""
VINDR_NAMES = (
    *("Aortic enlargement", "Atelectasis", "Calcification", "Cardiomegaly", "Clavicle fracture"),
    *("Consolidation", "Edema", "Emphysema", "Enlarged PA", "ILD", "Infiltration", "Lung Opacity"),
    *("Lung cavity", "Lung cyst", "Mediastinal shift", "Nodule/Mass", "Pleural effusion"),
    *("Pleural thickening", "Pneumothorax", "Pulmonary fibrosis", "Rib fracture", "Other lesion"),
    *("COPD", "Lung tumor", "Pneumonia", "Tuberculosis", "Other diseases"),
)
"""VinDr's own names of its 27 classes, in the order of its csv."""

Relation = Literal["exact", "narrower", "broader", "never", "alias"]
_CATALOGUE = Path(__file__).with_name("vocabulary.csv")
_LANGUAGES = {"en": "English", "de": "German", "fr": "French", "es": "Spanish", "zh": "Chinese"}


@dataclass(frozen=True)
class Entry:
    """A row of the catalogue; see the module for the columns."""

    dataset: str
    name: str
    canonical: str
    relation: Relation
    provenance: str


@cache
def catalogue() -> tuple[Entry, ...]:
    """Rows of `vocabulary.csv`, in its order."""
    with _CATALOGUE.open(encoding="utf-8", newline="") as file:
        return tuple(Entry(**row) for row in csv.DictReader(file))  # type: ignore[arg-type]


def class_name(name: str, dataset: str | None = None) -> str:
    """Canonical spelling of a class name; the name itself if the catalogue does not know it.

    Args:
        name: In any case, its words separated by any of "_", " ", "/" and "-".
        dataset: Data set whose own names are translated, such as "Effusion" of nih. None: only
            canonical names, because another hospital's "Effusion" may be a pericardial one.

    Example:
        >>> class_name("pleural_thickening"), class_name("Effusion", "nih")
        ('Pleural Thickening', 'Pleural Effusion')
    """
    return _names(dataset).get(key(name), name)


def is_class(name: str) -> bool:
    """Whether a name is the canonical name of a class of the catalogue."""
    return _names(None).get(key(name)) == name


def relation(name: str, other: str) -> Entry | None:
    """Entry for how `name` is related to `other` (narrower, broader or never); None: it is not."""
    return _relations().get((key(name), key(other)))


def resemblance(name: str, other: str) -> str | None:
    """Reason why a name that the catalogue does not know resembles a class; None: it does not.

    A name of some data set or an alias for the class counts, or a similar spelling (see
    `surgical_aggregation.aggregation.class_names`).

    Args:
        name: The unknown name.
        other: The class.
    """
    for entry in catalogue():
        if entry.canonical != other or key(entry.name) != key(name):
            continue
        if entry.relation == "exact":
            return f"dataset '{entry.dataset}' calls {other} so"
        if entry.relation == "alias":
            return f"{_LANGUAGES[entry.dataset]} for {other} ({entry.provenance})"
    return class_names.resemblance(name, other)


def one_finding(name: str, other: str) -> str | None:
    """Reason why two classes of different sites may be one finding; None: there is none.

    Two classes of the catalogue are always two findings. This function is the plugin `chest_xray`
    of the server's `LookAlikes`.
    """
    if is_class(name) and is_class(other):
        return None
    if reason := resemblance(name, other) or resemblance(other, name):
        return reason
    both = sorted(set.intersection(*(_aliases().get(key(each), set()) for each in (name, other))))
    return f"both are called {both[0]}" if both else None


def similar_classes(name: str) -> list[str]:
    """Classes of the 20 that a name unknown to the catalogue may mean; at most three."""
    resembling = [other for other in UNION_CLASSES if resemblance(name, other)]
    return (resembling or near_names(name, UNION_CLASSES))[:3]


@cache
def _names(dataset: str | None) -> Mapping[str, str]:
    """Folded name -> canonical name, for all classes and the data set's names for them."""
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
def _aliases() -> Mapping[str, set[str]]:
    """Folded alias -> the classes that are called so."""
    called: dict[str, set[str]] = {}
    for entry in catalogue():
        if entry.relation == "alias":
            called.setdefault(key(entry.name), set()).add(entry.canonical)
    return called


@cache
def _relations() -> Mapping[tuple[str, str], Entry]:
    """Folded name and folded class -> how they are related; see `relation`."""
    pairs = {}
    for entry in catalogue():
        name, other = key(entry.name), key(entry.canonical)
        if entry.relation not in ("exact", "alias"):
            pairs[name, other] = entry
        if entry.relation == "never":
            pairs[other, name] = entry
    return pairs
