"""Small counts are withheld, and enough others that nobody can work them out.

A site shares counts that add up to a total it shares as well, so a small count withheld alone would
be the total less the others. This is statistical disclosure control for one release, not
differential privacy: two releases that differ by a few images tell something about these.

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
    """Images in a cell, and of how many patients (images, where patients are unknown)."""

    images: int
    patients: int


def suppress(cells: Mapping[str, CellCount], min_count: int, sinks: Sequence[str]) -> Cells:
    """Withhold the small cells of a table whose total is known.

    A cell is small when it has images, but of fewer than `min_count` patients. If one is, the first
    filled sink is withheld too, and then further ones until at least two are withheld and they sum
    to `min_count` times their number; if the sinks do not suffice, all are. Apart from what is
    small, this looks at known sums only: whoever knows the rule, the total and all shared cells can
    exclude none of the values 1 to `min_count` - 1 for a small cell.

    Args:
        cells: Every image is in exactly one.
        min_count: Smallest number of patients that is shared.
        sinks: All cells in the order in which they may be withheld, the least useful first.
    """
    filled = [name for name in sinks if cells[name].images]
    withheld = {name for name in filled if cells[name].patients < min_count}
    if withheld:
        spare = iter(filled)
        withheld.add(next(spare))
        while len(withheld) < 2 or (
            sum(cells[name].images for name in withheld) < min_count * len(withheld)
        ):
            sink = next(spare, None)
            if sink is None:
                return dict.fromkeys(cells)
            withheld.add(sink)
    return {name: None if name in withheld else tally.images for name, tally in cells.items()}
