"""The phantom as demo data: written on first use and cached, with a body to start from.

The server imports this module, which therefore imports nothing that a server may lack.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from cxr_study.common.offered_data import DRAWINGS, DemoData
from cxr_study.common.offered_data import PHANTOM as NAME

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEMO_SITES = ("nih", "chexpert")
"""The sites of the demo study."""

IMAGES_PER_SITE = 2000
IMAGE_SIZE = 64
SEED = 0
"""Defaults of the demo study: frontal images of each site, side of the images in pixels, and seed.
"""
_PHANTOM_VERSION = 3  # raise it when the phantom changes
_REFERENCE_SIDE = 512  # pixels

PRETRAINED_BODY = Path(__file__).with_name("pretrained_body.npz")
"""The small DenseNet's pre-trained body.

Made by `python -m cxr_phantom.pretrain <file>` on two cores; on another processor or another number
of cores its last bits differ."""


def initial_body(name: str | None, *, simulated: bool) -> Path | None:
    """The pre-trained body, where a job asks for it or the demo needs one.

    Args:
        name: Of the initial body in the job's settings; None or "" where it has none.
        simulated: Whether the job runs in FLARE's simulator.

    Returns:
        `PRETRAINED_BODY` for the name "drawings"; without a name only in the simulator, on the
        phantom; else None.
    """
    on_phantom = os.environ.get("CXR_SITES", NAME) in ("", NAME)
    wanted = name == DRAWINGS or (not name and simulated and on_phantom)
    return PRETRAINED_BODY if wanted else None


def demo_study(seed: int = SEED, images: int | None = None) -> Path:
    """Folder of the demo study's site files, in the cache; written where it is not there.

    Safe to call from several processes at once: one writes, the others wait.

    Args:
        seed: Of the phantom; another seed draws other patients.
        images: Frontal images of each site. Default: `IMAGES_PER_SITE`.
    """
    images = images or IMAGES_PER_SITE
    return _phantom(f"{images}-{seed}", images, DEMO_SITES, seed)


def demo_data_sets(images: int) -> Path:
    """Folder of site files of all data sets that the phantom imitates; see `demo_study`.

    Args:
        images: Frontal images of each data set.
    """
    from cxr_phantom.drawing.rendering import SITES

    return _phantom(f"{images}-{'-'.join(SITES)}", images, tuple(SITES), SEED)


def reference_chest() -> NDArray[np.uint8]:
    """A drawn chest without findings, the same on every call.

    Returns:
        uint8 (512, 512).
    """
    import numpy as np

    from cxr_phantom.drawing.anatomy import sample_anatomy
    from cxr_phantom.drawing.rendering import render
    from cxr_study.data.labels.vocabulary import UNION_CLASSES

    rng = np.random.default_rng(0)
    shape = (1, len(UNION_CLASSES))
    picture: NDArray[np.uint8]
    (picture,) = render(
        np.zeros(shape),
        "nih",
        rng,
        _REFERENCE_SIDE,
        anatomy=sample_anatomy(1, rng),
        devices=np.zeros(1, int),
        lateral=np.zeros(1, bool),
        visibility=np.ones(shape),
    )
    return picture


PHANTOM = DemoData(DEMO_SITES, demo_study, reference_chest)
"""Offered under the name "phantom"."""


def _phantom(name: str, images: int, sites: tuple[str, ...], seed: int) -> Path:
    """Folder of the phantom's site files in the cache; a lock lets one process at a time write."""
    from filelock import FileLock

    from cxr_study.common import files, progress

    root = files.cache_dir() / f"phantom-{_PHANTOM_VERSION}-{name}"
    root.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{root}.lock"):
        if not root.exists():
            from rich.console import Console

            from cxr_phantom.writers.write_phantom import write_phantom  # which imports much

            notice = f"writing the phantom study to {root}"
            Console(stderr=True).print(notice, highlight=False, soft_wrap=True)
            with progress.bar("phantom images") as report:
                write_phantom(
                    root,
                    images_per_site=images,
                    size=IMAGE_SIZE,
                    seed=seed,
                    sites=sites,
                    progress=report,
                )
    return root / "sites"
