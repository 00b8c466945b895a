"""Spellings of names: a normal form to compare them, and suggestions for mistyped ones."""

import difflib
import re
from collections.abc import Sequence


def key(name: str) -> str:
    """Normal form of a name, to compare spellings: casefolded, words separated by one space.

    Example:
        >>> key("Pleural_Effusion") == key("pleural effusion") == key("Pleural-effusion")
        True
    """
    return re.sub(r"[_\s/-]+", " ", name).strip().casefold()


def nearest(name: str, known: Sequence[str]) -> str:
    """Suggest known names for a mistyped one, as the end of an error message.

    Args:
        name: As typed.
        known: Names that exist, in the order in which to list them.

    Returns:
        "nearest known: " with up to three similar names, nearest first; "known: " with all of them
        if none is similar.
    """
    close = near_names(name, known)
    return f"nearest known: {', '.join(close)}" if close else f"known: {', '.join(known)}"


def near_names(name: str, known: Sequence[str]) -> list[str]:
    """Known names that are similar to a mistyped one, nearest first; at most three."""
    spelt = {key(k): k for k in reversed(known)}
    return [spelt[n] for n in difflib.get_close_matches(key(name), spelt, n=3, cutoff=0.5)]
