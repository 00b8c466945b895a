"""From labels to pictures."""

import numpy as np

from cxr_study.phantom.acquisition import choose_views, expose, project
from cxr_study.phantom.anatomy import Anatomy, draw_chest, sample_anatomy
from cxr_study.phantom.findings import deform, paint
from cxr_study.vocabulary import UNION_CLASSES

_BATCH = 32  # pictures drawn at once: at 64 x 64 their arrays stay in a core's cache


def render(
    labels: np.ndarray,
    site: str,
    rng: np.random.Generator,
    size: int = 64,
    *,
    anatomy: Anatomy | None = None,
    views: np.ndarray | None = None,
) -> np.ndarray:
    """Draw chest radiographs that show the given findings.

    Every finding has its own stream of random numbers, so two calls with equal generators and
    different labels draw the same chests with the same noise, apart from the findings.

    Args:
        labels: Shape (n, 20), 1 where a finding of `UNION_CLASSES` is present, else 0.
        site: Whose acquisition to imitate: "nih" or "chexpert".
        rng: Source of randomness.
        size: Pixels along an edge.
        anatomy: The n chests in PA view; n different patients when omitted.
        views: "PA" or "AP" for each picture, shape (n,); in the site's proportion when omitted.

    Returns:
        Pictures of shape (n, size, size), uint8.

    Raises:
        ValueError: `labels` lacks a column or has too many, or the site is unknown.
    """
    labels = np.asarray(labels)
    if labels.ndim != 2 or labels.shape[1] != len(UNION_CLASSES):
        raise ValueError(
            f"labels need shape (n, {len(UNION_CLASSES)}), a column per class of UNION_CLASSES; "
            f"got {labels.shape}; fill the classes that are absent with 0."
        )
    n = len(labels)
    people, poses, *streams = rng.spawn(2 + -(-n // _BATCH))
    anatomy = sample_anatomy(n, people) if anatomy is None else anatomy
    views = choose_views(site, n, poses) if views is None else np.asarray(views)
    anatomy = project(anatomy, views == "PA")
    pictures = np.empty((n, size, size), dtype=np.uint8)
    for stream, start in zip(streams, range(0, n, _BATCH), strict=True):
        rows = np.arange(start, min(start + _BATCH, n))
        pictures[rows] = _render_batch(labels[rows], site, stream, size, anatomy.take(rows))
    return pictures


def _render_batch(
    labels: np.ndarray, site: str, rng: np.random.Generator, size: int, anatomy: Anatomy
) -> np.ndarray:
    """Draw one batch; see `render`."""
    texture, exposure, *streams = rng.spawn(2 + len(UNION_CLASSES))
    rngs = dict(zip(UNION_CLASSES, streams, strict=True))
    present = {name: np.flatnonzero(labels[:, k]) for k, name in enumerate(UNION_CLASSES)}
    chest = draw_chest(deform(anatomy, present, rngs), size, texture)
    paint(chest, present, rngs)
    return expose(chest.density, site, exposure)
