"""From findings to pictures."""

import numpy as np

from cxr_phantom.drawing.acquisition import SITES, expose, project
from cxr_phantom.drawing.anatomy import Anatomy
from cxr_phantom.drawing.chest import draw_chest, draw_lateral
from cxr_phantom.drawing.findings import Shown, deform, paint
from cxr_study.data.labels.vocabulary import UNION_CLASSES

_BATCH = 32  # pictures drawn at once: at 64 x 64 their arrays stay in a core's cache


def render(
    labels: np.ndarray,
    site: str,
    rng: np.random.Generator,
    size: int = 64,
    *,
    anatomy: Anatomy,
    devices: np.ndarray,
    lateral: np.ndarray,
    visibility: np.ndarray,
) -> np.ndarray:
    """Draw chest radiographs, uint8 (n, size, size); those from the front show their findings.

    Every finding has its own stream of random numbers, so two calls with equal generators and
    different labels draw the same chests with the same noise, apart from the findings.

    Args:
        labels: Shape (n, 20), 1 where a finding of `UNION_CLASSES` is present, else 0.
        site: Whose machines to imitate: "nih", "chexpert" or "mimic".
        rng: Source of randomness.
        size: Pixels along an edge.
        anatomy: The n chests in PA view.
        devices: Index of each picture's machine among the site's, (n,); decides between PA and AP.
        lateral: Whether each picture is taken from the side, shape (n,).
        visibility: How plainly each finding shows, from 0 to 1, shape (n, 20).
    """
    n, machines = len(labels), SITES[site]
    streams = rng.spawn(3 + -(-n // _BATCH))[3:]  # 3 spare ones keep pictures as they were
    pa = np.array([machine.view == "PA" for machine in machines])[devices]
    pictures = np.empty((n, size, size), dtype=np.uint8)
    for stream, start in zip(streams, range(0, n, _BATCH), strict=True):
        batch = np.arange(start, min(start + _BATCH, n))
        front, side, *exposures = stream.spawn(2 + len(machines))
        from_side = lateral[batch]
        density = np.empty((len(batch), size, size), dtype=np.float32)
        density[from_side] = draw_lateral(anatomy[batch[from_side]], size, side)
        rows = batch[~from_side]
        chests = project(anatomy[rows], pa[rows])
        density[~from_side] = _draw(chests, labels[rows], visibility[rows], size, front)
        for k, (machine, exposure) in enumerate(zip(machines, exposures, strict=True)):
            taken = devices[batch] == k
            pictures[batch[taken]] = expose(density[taken], machine, exposure)
    return pictures


def _draw(
    anatomy: Anatomy,
    labels: np.ndarray,
    visibility: np.ndarray,
    size: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Density of pictures from the front."""
    texture, *streams = rng.spawn(1 + len(UNION_CLASSES))
    shown = {}
    for k, (name, stream) in enumerate(zip(UNION_CLASSES, streams, strict=True)):
        rows = np.flatnonzero(labels[:, k])
        shown[name] = Shown(rows, visibility[rows, k], stream)
    anatomy = deform(anatomy, shown)
    chest = draw_chest(anatomy, size, texture)
    paint(chest, shown)
    return chest.density
