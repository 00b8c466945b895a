"""From findings to pictures."""

import numpy as np

from cxr_study.data.labels.vocabulary import UNION_CLASSES
from cxr_study.phantom.drawing.acquisition import choose_devices, devices_of, expose, project
from cxr_study.phantom.drawing.anatomy import Anatomy, Shown, sample_anatomy
from cxr_study.phantom.drawing.chest import draw_chest
from cxr_study.phantom.drawing.findings import deform, paint
from cxr_study.phantom.drawing.lateral import draw_lateral, paint_lateral

_BATCH = 32  # pictures drawn at once: at 64 x 64 their arrays stay in a core's cache


def render(
    labels: np.ndarray,
    site: str,
    rng: np.random.Generator,
    size: int = 64,
    *,
    anatomy: Anatomy | None = None,
    devices: np.ndarray | None = None,
    lateral: np.ndarray | None = None,
    visibility: np.ndarray | None = None,
) -> np.ndarray:
    """Draw chest radiographs that show the given findings.

    Every finding has its own stream of random numbers, so two calls with equal generators and
    different labels draw the same chests with the same noise, apart from the findings.

    Args:
        labels: Shape (n, 20), 1 where a finding of `UNION_CLASSES` is present, else 0.
        site: Whose machines to imitate: "nih", "chexpert" or "mimic".
        rng: Source of randomness.
        size: Pixels along an edge.
        anatomy: The n chests in PA view; n different patients when omitted.
        devices: Index of each picture's machine among the site's, shape (n,); in the site's
            proportion when omitted. It decides between PA and AP.
        lateral: Whether each picture is taken from the side, shape (n,); none when omitted.
        visibility: How plainly each finding shows, from 0 to 1, shape (n, 20); at random when
            omitted.

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
    machines = devices_of(site)
    n = len(labels)
    people, poses, strengths, *streams = rng.spawn(3 + -(-n // _BATCH))
    anatomy = sample_anatomy(n, people) if anatomy is None else anatomy
    devices = choose_devices(site, n, poses) if devices is None else devices
    lateral = np.zeros(n, dtype=bool) if lateral is None else lateral
    visibility = strengths.random(labels.shape) if visibility is None else visibility
    pa = np.array([machine.view == "PA" for machine in machines])[devices]
    pictures = np.empty((n, size, size), dtype=np.uint8)
    for stream, start in zip(streams, range(0, n, _BATCH), strict=True):
        batch = np.arange(start, min(start + _BATCH, n))
        density = np.empty((len(batch), size, size), dtype=np.float32)
        front, side, *exposures = stream.spawn(2 + len(machines))
        for from_side, source in ((False, front), (True, side)):
            chosen = lateral[batch] == from_side
            rows = batch[chosen]
            if len(rows):
                chests = anatomy.take(rows) if from_side else project(anatomy.take(rows), pa[rows])
                density[chosen] = _draw(
                    chests, labels[rows], visibility[rows], from_side, size, source
                )
        for k, (machine, exposure) in enumerate(zip(machines, exposures, strict=True)):
            taken = devices[batch] == k
            if taken.any():
                pictures[batch[taken]] = expose(density[taken], machine, exposure)
    return pictures


def _draw(
    anatomy: Anatomy,
    labels: np.ndarray,
    visibility: np.ndarray,
    from_side: bool,
    size: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """Draw the density of pictures of one projection; see `render`."""
    texture, *streams = rng.spawn(1 + len(UNION_CLASSES))
    shown = {}
    for k, (name, stream) in enumerate(zip(UNION_CLASSES, streams, strict=True)):
        rows = np.flatnonzero(labels[:, k])
        shown[name] = Shown(rows, visibility[rows, k], stream)
    anatomy = deform(anatomy, shown)
    if from_side:
        lateral_chest = draw_lateral(anatomy, size, texture)
        paint_lateral(lateral_chest, shown)
        return lateral_chest.density
    chest = draw_chest(anatomy, size, texture)
    paint(chest, shown)
    return chest.density
