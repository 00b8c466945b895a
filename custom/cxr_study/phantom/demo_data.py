"""The embedded study: phantom data, made on first use and cached, and a pre-trained body."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from cxr_study.common import cache, progress

IMAGES_PER_SITE = 2000
IMAGE_SIZE = 64
SEED = 0
_PHANTOM_VERSION = 2  # raise it when the phantom changes

PRETRAINED_BODY = Path(__file__).with_name("pretrained_body.npz")
"""The small DenseNet's body, pre-trained on source pictures.

Made by `python -m cxr_study.training.pretrain <file>` on two cores; with another number of cores
its last bits differ.
"""


@dataclass(frozen=True)
class EmbeddedStudy:
    """Where the embedded study lies.

    Attributes:
        root: Folder of the phantom.
        sites: Folder of its site files.
    """

    root: Path

    @property
    def sites(self) -> Path:
        """Folder of the site files."""
        return self.root / "sites"


def embedded_study(seed: int = SEED, images: int | None = None) -> EmbeddedStudy:
    """The phantom study in the cache, written first where it is not there.

    Several processes may ask at once: one writes, the others wait.

    Args:
        seed: Of the phantom; with another, other patients are drawn.
        images: Frontal images of each site. Default: `IMAGES_PER_SITE`.
    """
    study = _study(seed, images or IMAGES_PER_SITE)
    _write(study.root, images or IMAGES_PER_SITE, ("nih", "chexpert"), seed)
    return study


def embedded_data(images: int) -> Path:
    """Folder of a phantom of all data sets in the cache, written first where it is not there.

    Args:
        images: Frontal images of each data set.
    """
    from cxr_study.phantom.drawing.acquisition import SITES

    root = cache.cache_dir() / f"phantom-{_PHANTOM_VERSION}-{images}-{'-'.join(SITES)}"
    _write(root, images, tuple(SITES), SEED)
    return root


def _write(root: Path, images: int, sites: tuple[str, ...], seed: int) -> None:
    with _lock(root):
        if root.exists():
            return
        from cxr_study.phantom.writers.write import write_phantom  # which imports much

        _notice(f"writing the phantom study to {root}")
        with progress.bar("phantom images") as report:
            write_phantom(
                root,
                images_per_site=images,
                size=IMAGE_SIZE,
                seed=seed,
                sites=sites,
                progress=report,
            )


def _study(seed: int = SEED, images: int = IMAGES_PER_SITE) -> EmbeddedStudy:
    return EmbeddedStudy(cache.cache_dir() / f"phantom-{_PHANTOM_VERSION}-{images}-{seed}")


def _lock(path: Path) -> FileLock:
    path.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(f"{path}.lock")


def _notice(text: str) -> None:
    from rich.console import Console

    Console(stderr=True).print(text, highlight=False, soft_wrap=True)
