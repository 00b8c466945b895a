"""Names as people type them: what spellings have in common, and what a mistyped one may mean."""

import difflib
import re
from collections.abc import Sequence


def key(name: str) -> str:
    """Return what all spellings of a name have in common.

    Case does not matter, and neither does which of "_", " ", "/" and "-" separates the words.
    """
    return re.sub(r"[_\s/-]+", " ", name).strip().casefold()


def nearest(name: str, known: Sequence[str]) -> str:
    """Say which known names a mistyped one may have meant.

    Args:
        name: The name that is not known.
        known: Names that are.

    Returns:
        "nearest known: ..." with up to three names, or "known: ..." with all where none is near.
    """
    close = near(name, known)
    return f"nearest known: {', '.join(close)}" if close else f"known: {', '.join(known)}"


def near(name: str, known: Sequence[str]) -> list[str]:
    """Known names that a mistyped one may have meant, nearest first; at most three."""
    spelt = {key(k): k for k in reversed(known)}
    return [spelt[n] for n in difflib.get_close_matches(key(name), spelt, n=3, cutoff=0.5)]
