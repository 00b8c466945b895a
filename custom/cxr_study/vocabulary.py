"""The names of the classes: one canonical spelling each, and the aliases the datasets use.

Spellings follow Kulkarni et al., ML4H 2024. Classes that only resemble each other (Lung Lesion and
Mass, Pleural Other and Pleural Thickening, Lung Opacity and Infiltration) stay apart.
"""

import difflib
import re

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

_ALIASES = {"Effusion": "Pleural Effusion", "Infiltrate": "Infiltration"}  # both NIH


class VocabularyError(ValueError):
    """A name is not the name of a class."""


def _key(name: str) -> str:
    return re.sub(r"[_ /]+", " ", name).strip().casefold()


_CANONICAL = {_key(name): name for name in UNION_CLASSES} | {
    _key(alias): name for alias, name in _ALIASES.items()
}


def canonical(name: str) -> str:
    """Return the canonical spelling of a class name.

    Case does not matter, and neither does which of "_", " " and "/" separates the words.

    Args:
        name: Class name as NIH ChestX-ray14 or CheXpert spells it, e.g. "Pleural_Thickening".

    Returns:
        The member of `UNION_CLASSES` that is meant.

    Raises:
        VocabularyError: No class has this name; the message offers the nearest ones.
    """
    try:
        return _CANONICAL[_key(name)]
    except KeyError:
        raise VocabularyError(
            f"'{name}' is not the name of a class; {nearest(name, UNION_CLASSES)}"
        ) from None


def nearest(name: str, known: tuple[str, ...]) -> str:
    """Say which known names a mistyped one may have meant.

    Args:
        name: The name that is not known.
        known: Names that are.

    Returns:
        "nearest known: ..." with up to three names, or "known: ..." with all where none is near.
    """
    near = difflib.get_close_matches(name.casefold(), [_key(k) for k in known], n=3, cutoff=0.5)
    if near:
        return "nearest known: " + ", ".join(k for n in near for k in known if _key(k) == n)
    return "known: " + ", ".join(known)
