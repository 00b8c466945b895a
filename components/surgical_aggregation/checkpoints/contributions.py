"""Which sites contributed to a model, in which rounds, by its manifest."""

from collections.abc import Iterable, Mapping
from typing import Any

Spans = tuple[tuple[int, int], ...]
"""Rounds as ranges, first and last included, in order."""


def contributed(manifest: Mapping[str, Any]) -> dict[str, Spans]:
    """Site -> rounds in which its result was averaged.

    Older versions do not say it: there, those in which it trained a class that was not imported.

    Example:
        >>> contributed({"classes": {"A": {"rounds": [[0, 1, ["a"]], [2, 3, ["a", "b"]]]}}})
        {'a': ((0, 3),), 'b': ((2, 3),)}
    """
    if (said := manifest.get("contributed")) is not None:
        return {site: tuple((first, last) for first, last in of) for site, of in said.items()}
    found: dict[str, Spans] = {}
    rounds = [
        (first, last, site)
        for facts in manifest.get("classes", {}).values()
        if "imported" not in facts
        for first, last, sites in facts.get("rounds", ())
        for site in sites
    ]
    for first, last, site in sorted(rounds):
        found[site] = with_span(found.get(site, ()), first, last)
    return dict(sorted(found.items()))


def with_span(spans: Spans, first: int, last: int) -> Spans:
    """Ranges and one more, which begins no earlier than the last of them.

    Example:
        >>> with_span(((0, 1),), 2, 2)
        ((0, 2),)
    """
    if spans and first <= spans[-1][1] + 1:
        return (*spans[:-1], (spans[-1][0], max(last, spans[-1][1])))
    return (*spans, (first, last))


def rounds_in(spans: Iterable[tuple[int, int]]) -> set[int]:
    """Rounds that lie in ranges."""
    return {number for first, last in spans for number in range(first, last + 1)}


def spans(rounds: Iterable[int]) -> Spans:
    """Rounds as ranges.

    Example:
        >>> spans([3, 0, 1])
        ((0, 1), (3, 3))
    """
    found: Spans = ()
    for each in sorted(rounds):
        found = with_span(found, each, each)
    return found
