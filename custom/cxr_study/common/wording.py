"""Wording of pages and messages: numbers with their nouns, durations, lists of names, notices."""

from collections.abc import Sequence
from dataclasses import dataclass

FEW_IMAGES = 30
"""With fewer positive (or negative) test images an AUROC's interval is wide."""


@dataclass(frozen=True)
class Notice:
    """A caveat that the reader of a report needs to interpret its numbers.

    Attributes:
        heading: One short sentence.
        text: What it means for the results, and what can be done.
    """

    heading: str
    text: str


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun, such as `1 class` or `2,000 images`.

    Args:
        number: With separators of thousands in the result.
        noun: Singular.
        plural: Default: the noun with an s.
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def join_names(names: Sequence[str]) -> str:
    """Join names for a sentence: `a, b and c`; "" without names."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def format_rounds(spans: Sequence[tuple[int, int]]) -> str:
    """Write ranges of rounds, such as `round 2` or `rounds 0 to 3, 5 and 6`.

    Args:
        spans: First and last round of each range, both included. Empty: `no round`.
    """
    texts: list[str] = []
    for first, last in spans:
        texts += [f"{first} to {last}"] if last > first + 1 else map(str, range(first, last + 1))
    if not texts:
        return "no round"
    one = len(texts) == 1 and texts[0].isdigit()
    return f"{'round' if one else 'rounds'} {join_names(texts)}"


def shortened(names: Sequence[str], most: int = 6) -> str:
    """Join names for a sentence; of more than `most` only the first: `a, b and 5 more`."""
    if len(names) <= most:
        return join_names(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def duration(seconds: float) -> str:
    """Write a duration in its two largest units: `4.2 s`, `2 min 03 s` or `1 h 05 min`."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
