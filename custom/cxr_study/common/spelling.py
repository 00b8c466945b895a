"""Names as people type them: what spellings share, and what a mistyped one may mean."""

import difflib
import re
from collections.abc import Sequence


def key(name: str) -> str:
    """What all spellings of a name share: without case, and however its words are separated."""
    return re.sub(r"[_\s/-]+", " ", name).strip().casefold()


def nearest(name: str, known: Sequence[str]) -> str:
    """Say which known names a mistyped one may have meant: up to three near ones, else all."""
    close = near(name, known)
    return f"nearest known: {', '.join(close)}" if close else f"known: {', '.join(known)}"


def near(name: str, known: Sequence[str]) -> list[str]:
    """Known names that a mistyped one may have meant, nearest first; at most three."""
    spelt = {key(k): k for k in reversed(known)}
    return [spelt[n] for n in difflib.get_close_matches(key(name), spelt, n=3, cutoff=0.5)]
