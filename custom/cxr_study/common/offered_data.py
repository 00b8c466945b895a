"""Demo data that installed packages offer, in place of a site's own.

An entry point of the group `surgagg.demo_data` is a `DemoData`; its name is said wherever a folder
of site files may be. A body to start from is offered in the same way, see `extras.offered_body`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING

from surgical_aggregation.extras import offered_body

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GROUP = "surgagg.demo_data"

PHANTOM = "phantom"
"""Name of the demo data that are meant where none are named."""

DRAWINGS = "drawings"
"""Name of the phantom's body, which was pre-trained on drawings, in place of a checkpoint."""


class DemoDataError(ValueError):
    """No installed package offers the demo data that are asked for."""


@dataclass(frozen=True)
class DemoData:
    """What a package offers.

    Attributes:
        sites: Names of the sites.
        site_files: Gives the folder of <site>.yaml; the data are made where they are not there.
        picture: Gives a picture to try a model with, uint8 (height, width), always the same.
    """

    sites: tuple[str, ...]
    site_files: Callable[[], Path]
    picture: Callable[[], NDArray[np.uint8]]


def is_demo_data(name: object) -> bool:
    """Whether a name stands for demo data, in place of a folder of site files."""
    return name == PHANTOM or str(name) in entry_points(group=GROUP).names


def demo_data(name: str = PHANTOM) -> DemoData:
    """The demo data of a name.

    Raises:
        DemoDataError: No installed package offers them.
    """
    try:
        (entry,) = entry_points(group=GROUP, name=name)
        found: DemoData = entry.load()
    except (ValueError, ModuleNotFoundError) as error:
        raise _missing(name, error) from error
    return found


def site_files(given: str | Path | None) -> Path:
    """Folder of site files: the one given, or of the demo data of that name.

    Args:
        given: A folder, or the name of demo data; None or "": the phantom's.

    Raises:
        DemoDataError: See `demo_data`.
    """
    name = str(given or PHANTOM)
    return demo_data(name).site_files() if is_demo_data(name) else Path(name)


def drawings() -> Path:
    """File of the body that was pre-trained on drawings.

    Raises:
        DemoDataError: No installed package offers it.
    """
    if body := offered_body(DRAWINGS):
        return body
    raise _missing(DRAWINGS)


def _missing(name: str, error: Exception | None = None) -> DemoDataError:
    absent = f": {error}" if isinstance(error, ModuleNotFoundError) else ""
    comes_with = "cxr_phantom, which is part of 'surgical-aggregation[cxr]'"
    return DemoDataError(
        f"{name!r} needs an installed package that offers it, and there is none{absent}. "
        + (f"Install {comes_with}." if name in (PHANTOM, DRAWINGS) else "Install it.")
    )
