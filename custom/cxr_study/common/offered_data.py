"""Demo data that installed packages offer, in place of a site's own.

An entry point of the group `surgagg.demo_data` is a `DemoData`. Its name can be given wherever a
folder of site files can. Initial bodies are offered in the same way; see `extras.offered_body`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from surgical_aggregation.extras import PartError, find_part, offered_body

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GROUP = "surgagg.demo_data"

PHANTOM = "phantom"
"""Name of the default demo data."""

DRAWINGS = "drawings"
"""Name of the phantom's initial body, pre-trained on drawings; given in place of a checkpoint."""


@dataclass(frozen=True)
class DemoData:
    """Demo data of one package.

    Attributes:
        sites: Names of the sites.
        site_files: Returns the folder of <site>.yaml; creates the data first if they are missing.
        picture: Returns an image to try a model with, uint8 (height, width), always the same.
    """

    sites: tuple[str, ...]
    site_files: Callable[[], Path]
    picture: Callable[[], NDArray[np.uint8]]


def is_demo_data(name: object) -> bool:
    """Whether `name` names demo data rather than a folder of site files."""
    return name == PHANTOM or str(name) in entry_points(group=GROUP).names


def demo_data(name: str = PHANTOM) -> DemoData:
    """Load the demo data of an installed package.

    Args:
        name: Of the entry point. Default: the phantom.

    Raises:
        PartError: No installed package offers them.
        EntryPointError: What the package offers cannot be used.
    """
    return find_part("demo data", name, GROUP, {}, DemoData)


def site_files(given: str | Path | None) -> Path:
    """Folder of site files: the given one, or that of the demo data with this name.

    Args:
        given: A folder, or the name of demo data. None and "" mean the phantom.

    Raises:
        PartError: See `demo_data`.
        EntryPointError: Likewise.
    """
    name = str(given or PHANTOM)
    return demo_data(name).site_files() if is_demo_data(name) else Path(name)


def drawings() -> Path:
    """Checkpoint file of the body that was pre-trained on drawings, see `DRAWINGS`.

    Raises:
        PartError: No installed package offers it.
    """
    if body := offered_body(DRAWINGS):
        return body
    raise PartError(
        f"{DRAWINGS!r} needs an installed package that offers it, and there is none. Install "
        "cxr_phantom, which is part of 'surgical-aggregation[cxr]'."
    )
