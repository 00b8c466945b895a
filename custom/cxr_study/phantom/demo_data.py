"""The embedded study: phantom data and a pre-trained body, made on first use and cached."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from cxr_study.common import cache, progress

IMAGES_PER_SITE = 2000
IMAGE_SIZE = 64
SEED = 0
_PHANTOM_VERSION = 2  # raise it when the phantom changes
_BODY_VERSION = 2  # raise it when the pre-training changes


class EmbeddedStudyError(ValueError):
    """The embedded study cannot be made."""


@dataclass(frozen=True)
class EmbeddedStudy:
    """Where the embedded study lies.

    Attributes:
        root: Folder of the phantom.
        sites: Folder of its site files.
        initial_body: Checkpoint of the body pre-trained on source pictures (may not exist yet).
    """

    root: Path

    @property
    def sites(self) -> Path:
        """Folder of the site files."""
        return self.root / "sites"

    @property
    def initial_body(self) -> Path:
        """Checkpoint of the pre-trained body."""
        return self.root.with_name(f"{self.root.name}-initial_body-{_BODY_VERSION}.npz")


def embedded_study(seed: int = SEED) -> EmbeddedStudy:
    """The phantom study in the cache, written first where it is not there.

    Several processes may ask at once: one writes, the others wait.

    Args:
        seed: Of the phantom; with another, other patients are drawn.
    """
    study = _study(seed)
    _write(study.root, IMAGES_PER_SITE, ("nih", "chexpert"), seed)
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


def embedded_initial_body() -> Path:
    """The body pre-trained on source pictures, trained first where it is not there.

    Trains in a process of its own, so that the asking process needs no TensorFlow.

    Raises:
        EmbeddedStudyError: Training failed; the message ends with its last lines.
    """
    study = _study()
    with _lock(study.initial_body):
        if not study.initial_body.exists():
            _notice(f"pre-training the initial body on source pictures to {study.initial_body}")
            command = [sys.executable, "-m", "cxr_study.training.pretrain", str(study.initial_body)]
            _run(command)
    return study.initial_body


def _study(seed: int = SEED) -> EmbeddedStudy:
    return EmbeddedStudy(cache.cache_dir() / f"phantom-{_PHANTOM_VERSION}-{IMAGES_PER_SITE}-{seed}")


def _run(command: list[str]) -> None:
    """Run a program of this project, passing on what it says."""
    paths = os.pathsep.join(path for path in sys.path if path)
    said: deque[str] = deque(maxlen=5)
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    ) as process:
        for line in process.stdout or ():
            said.append(line)
            sys.stderr.write(line)
    if process.returncode:
        raise EmbeddedStudyError(
            f"pre-training the initial body failed (exit code {process.returncode}); give one made "
            f"by `surgagg init` instead, or mend what it says at its end:\n{''.join(said).rstrip()}"
        )


def _lock(path: Path) -> FileLock:
    path.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(f"{path}.lock")


def _notice(text: str) -> None:
    from rich.console import Console

    Console(stderr=True).print(text, highlight=False, soft_wrap=True)
