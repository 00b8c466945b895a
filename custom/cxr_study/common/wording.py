"""How pages put things: numbers with their nouns, durations, lists of names, notices."""

from collections.abc import Sequence
from dataclasses import dataclass

FEW_IMAGES = 30
"""Below so many positive (or negative) test images an AUROC's interval is wide."""


@dataclass(frozen=True)
class Notice:
    """Something the reader must know before believing a number."""

    heading: str
    text: str


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun: `1 class`, `2 classes`; the plural ends in s when omitted."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def listed(names: Sequence[str]) -> str:
    """Join names as a sentence does: `a, b and c`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def rounds_listed(spans: Sequence[tuple[int, int]]) -> str:
    """Ranges of rounds, first and last included: `round 2`, `rounds 0 to 3, 5 and 6`."""
    texts: list[str] = []
    for first, last in spans:
        texts += [f"{first} to {last}"] if last > first + 1 else map(str, range(first, last + 1))
    if not texts:
        return "no round"
    one = len(texts) == 1 and texts[0].isdigit()
    return f"{'round' if one else 'rounds'} {listed(texts)}"


def shortened(names: Sequence[str], most: int = 6) -> str:
    """Join names as a sentence does; of more than `most` the first: `a, b and 5 more`."""
    if len(names) <= most:
        return listed(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def duration(seconds: float) -> str:
    """Write a duration in the two largest units that matter, such as `2 min 03 s`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
