"""The demo study: phantom data, made on first use and cached, and a pre-trained body."""

from __future__ import annotations

from pathlib import Path

from filelock import FileLock

from cxr_phantom import DEMO_SITES
from cxr_study.common import files, progress

IMAGES_PER_SITE = 2000
IMAGE_SIZE = 64
SEED = 0
_PHANTOM_VERSION = 3  # raise it when the phantom changes

PRETRAINED_BODY = Path(__file__).with_name("pretrained_body.npz")
"""The small DenseNet's pre-trained body.

Made by `python -m cxr_study.training.pretrain <file>` on two cores; on another processor or
another number of cores its last bits differ.
"""


def demo_study(seed: int = SEED, images: int | None = None) -> Path:
    """Folder of the demo study's site files, in the cache; written where it is not there.

    Several processes may ask at once: one writes, the others wait.

    Args:
        seed: Of the phantom; with another, other patients are drawn.
        images: Frontal images of each site. Default: `IMAGES_PER_SITE`.
    """
    images = images or IMAGES_PER_SITE
    return _phantom(f"{images}-{seed}", images, DEMO_SITES, seed)


def demo_data_sets(images: int) -> Path:
    """The same of all data sets that the phantom imitates, with so many frontal images each."""
    from cxr_phantom.drawing.acquisition import SITES

    return _phantom(f"{images}-{'-'.join(SITES)}", images, tuple(SITES), SEED)


def _phantom(name: str, images: int, sites: tuple[str, ...], seed: int) -> Path:
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
