"""Small counts are withheld, and so much besides that nobody can work them out.

A site shares counts of images that add up to a total it shares as well. Withholding a small count
alone would be no use: it is the total less the others. So a count is never withheld alone, and
those withheld together are large enough on average that each may still have any small value.

This is statistical disclosure control for one release, not differential privacy: whoever compares
two releases of a site that differ by a few images can learn about these.

Source:
    Complementary cell suppression: Hundepool et al., Statistical Disclosure Control, 2012,
    chapter 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Cells = dict[str, int | None]
"""Name of a cell -> number of images; None where it is withheld."""


@dataclass(frozen=True)
class CellCount:
    """How many images are in a cell, and of how many patients (images, where that is unknown)."""

    images: int
    patients: int


def suppress(cells: Mapping[str, CellCount], min_count: int, sinks: Sequence[str]) -> Cells:
    """Withhold the small cells of a table whose total is known.

    A cell is small when it has images, but of fewer than `min_count` patients; an empty one is not.
    If a cell is small, the first sink is withheld too, whatever its count, and then further ones
    until at least two are withheld and they sum to `min_count` times their number. Where the sinks
    do not suffice, nothing is shared.

    Apart from what is small, this looks at sums that are known anyway. So whoever knows the rule,
    the total and all shared cells can exclude none of the values 1 to `min_count` - 1 for a small
    cell.

    Args:
        cells: Every image is in exactly one.
        min_count: Smallest number of patients that is shared.
        sinks: All cells in the order in which they may be withheld, those worth least first.

    Returns:
        The cells in their order; a withheld one does not say whether it was small.
    """
    filled = [name for name in sinks if cells[name].images]
    withheld = {name for name in filled if cells[name].patients < min_count}
    if withheld:
        spare = iter(filled)
        withheld.add(next(spare))
        while not _safe([cells[name].images for name in withheld], min_count):
            sink = next(spare, None)
            if sink is None:
                return dict.fromkeys(cells)
            withheld.add(sink)
    return {name: None if name in withheld else tally.images for name, tally in cells.items()}


def _safe(withheld: Sequence[int], min_count: int) -> bool:
    return len(withheld) > 1 and sum(withheld) >= min_count * len(withheld)
