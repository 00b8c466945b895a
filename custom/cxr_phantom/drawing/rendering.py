"""From findings to pictures: the view, and how a site's machines turn density into a picture."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from cxr_phantom.drawing.anatomy import Anatomy
from cxr_phantom.drawing.canvas import axes, blur, edge, pick, smooth_noise, uniform
from cxr_phantom.drawing.chest import draw_chest, draw_lateral
from cxr_phantom.drawing.findings import Shown, deform, paint
from cxr_study.data.labels.vocabulary import UNION_CLASSES

_GLYPHS = {
    "L": ("X....", "X....", "X....", "X....", "XXXXX"),
    "R": ("XXXX.", "X...X", "XXXX.", "X..X.", "X...X"),
    "AP": (".XX..XXX", "X..X.X.X", "XXXX.XXX", "X..X.X..", "X..X.X.."),
    "PORT": ("XXX.XXX.XXX.XXX", "X.X.X.X.X.X..X.", "XXX.X.X.XX...X.", "X...XXX.X.X..X."),
}
_LEFT = {"L": (0.7, 0.8), "R": (-0.93, -0.82), "AP": (0.5, 0.6), "PORT": (0.3, 0.42)}
_BATCH = 32  # pictures drawn at once: at 64 x 64 their arrays stay in a core's cache


@dataclass(frozen=True)
class Device:
    """Imaging characteristics of a machine.

    Attributes:
        share: Share of the site's examinations.
        view: Of its frontal pictures, "PA" or "AP".
        attenuation: Brightness gained per unit of density; low values make a soft, grey picture.
        black: Density-independent brightness mapped to black.
        white: The same for white.
        scatter: Veiling glare, as a share of the picture's brightness.
        blur: 0 for none to 1 for about a pixel; below 0 it enhances edges.
        noise: Standard deviation of the grain, as a share of the brightness range.
        border: Widest collimation border, in picture units.
        markers: Texts that may appear in the upper corners, by blanks.
    """

    share: float
    view: str
    attenuation: float
    black: float
    white: float
    scatter: float
    blur: float
    noise: float
    border: float
    markers: str


_DEVICES = pd.read_csv(Path(__file__).with_name("devices.csv"), comment="#", index_col="site")
SITES: Mapping[str, tuple[Device, ...]] = {
    str(site): tuple(Device(*line) for line in lines.itertuples(index=False))
    for site, lines in _DEVICES.groupby("site", sort=False)
}
"""Site -> its machines."""


def choose_devices(site: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw the machines of examinations in the site's proportions.

    Args:
        site: Key of `SITES`.
        n: Number of examinations.
        rng: Source of randomness.

    Returns:
        Indices of the site's machines, shape (n,).
    """
    shares = [device.share for device in SITES[site]]
    return rng.choice(len(shares), size=n, p=shares)


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
    """Draw chest radiographs; those from the front show their findings.

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
        visibility: How clearly each finding shows, from 0 to 1, shape (n, 20).

    Returns:
        uint8 (n, size, size).
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


def project(anatomy: Anatomy, pa: np.ndarray) -> Anatomy:
    """Chests as they appear in their view: PA unchanged, AP distorted.

    An AP picture is taken at a short distance, mostly of a lying patient: heart and mediastinum are
    magnified, the diaphragm is higher.

    Args:
        anatomy: n chests in PA view; not changed.
        pa: Whether each picture is PA, bool (n,).
    """
    seen: Anatomy = anatomy.copy()
    rows = np.flatnonzero(~pa)
    seen.heart_width[rows] *= 1.12
    seen.mediastinum_width[rows] *= 1.12
    seen.right_base[rows] -= 0.07
    seen.left_base[rows] -= 0.07
    seen.magnification[rows] *= 1.05
    seen.wall[rows] += 0.04
    return seen


def expose(density: np.ndarray, device: Device, rng: np.random.Generator) -> np.ndarray:
    """Turn density into 8-bit pictures as a machine would.

    Args:
        density: float32 (n, size, size).
        device: The machine.
        rng: Source of randomness of exposure, grain, markers and collimation.

    Returns:
        uint8 (n, size, size).
    """
    n, size = len(density), density.shape[-1]
    film = 1 - np.exp(-device.attenuation * uniform(rng, n, 0.88, 1.12) * np.maximum(density, 0))
    film += device.blur * (blur(film) - film)
    glare = device.scatter * (1 + 0.3 * smooth_noise(rng, n, size, 2))
    film += glare * (film.mean(axis=(1, 2), keepdims=True) - film + 0.3)
    film = film - device.black - uniform(rng, n, -0.03, 0.03)
    film = film / (device.white - device.black) * uniform(rng, n, 0.94, 1.06)
    film += device.noise * blur(rng.standard_normal(film.shape, dtype=np.float32)) * 1.9
    film = np.clip(film, 0, 1)
    for text in device.markers.split():
        film = np.maximum(film, _marker(text, n, size, rng))
    film *= _collimation(device.border, n, size, rng)
    return (film * np.float32(255) + np.float32(0.5)).astype(np.uint8)


def _marker(text: str, n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """A lead marker in an upper corner of four pictures out of five."""
    glyph = np.array([[mark == "X" for mark in line] for line in _GLYPHS[text]], dtype=np.float32)
    rows, columns = glyph.shape
    x, y = axes(size)
    scale = uniform(rng, n, 0.028, 0.036)
    left, top = uniform(rng, n, *_LEFT[text]), uniform(rng, n, -0.92, -0.75)
    i = np.floor((y - top) / scale).astype(int)
    j = np.floor((x - left) / scale).astype(int)
    inside = (i >= 0) & (i < rows) & (j >= 0) & (j < columns)
    shown = pick(rng, n, 0.8) * uniform(rng, n, 0.7, 1.0)
    return inside * glyph[np.clip(i, 0, rows - 1), np.clip(j, 0, columns - 1)] * shown


def _collimation(widest: float, n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """1 inside the collimated field, near 0 outside; the edges are slightly slanted."""
    x, y = axes(size)
    field = np.ones((n, size, size), dtype=np.float32)
    if widest == 0:
        return field
    for along, across in ((x, y), (x, -y), (y, x), (y, -x)):
        width = uniform(rng, n, -widest, widest)
        field *= edge(1 - width + uniform(rng, n, -0.04, 0.04) * along - across, 2 / size)
    return 0.06 + 0.94 * field
