"""How a site's machine turns density into a picture: view, exposure, noise, border, markers."""

from dataclasses import dataclass

import numpy as np

from cxr_study.phantom.anatomy import Anatomy
from cxr_study.phantom.canvas import axes, blur, edge, pick, smooth_noise, uniform

_GLYPHS = {
    "L": ("X....", "X....", "X....", "X....", "XXXXX"),
    "R": ("XXXX.", "X...X", "XXXX.", "X..X.", "X...X"),
    "PORT": ("XXX.XXX.XXX.XXX", "X.X.X.X.X.X..X.", "XXX.X.X.XX...X.", "X...XXX.X.X..X."),
}


@dataclass(frozen=True)
class Acquisition:
    """The look of one site's pictures.

    Attributes:
        pa_share: Share of pictures taken PA; the others are AP.
        attenuation: Brightness gained per unit of density; low values make a soft, grey picture.
        window: Density-independent brightness mapped to black and to white.
        scatter: Veiling glare, as a share of the picture's brightness.
        blur: Unsharpness, 0 for none to 1 for about a pixel.
        noise: Standard deviation of the grain, as a share of the brightness range.
        border: Widest collimation border, in picture units.
        markers: Texts that may stand in the upper corners.
    """

    pa_share: float
    attenuation: float
    window: tuple[float, float]
    scatter: float
    blur: float
    noise: float
    border: float
    markers: tuple[str, ...]


SITES = {
    "nih": Acquisition(
        pa_share=0.75,
        attenuation=1.15,
        window=(0.2, 0.95),
        scatter=0.03,
        blur=0.3,
        noise=0.014,
        border=0.0,
        markers=("L",),
    ),
    "chexpert": Acquisition(
        pa_share=0.15,
        attenuation=0.9,
        window=(0.06, 0.93),
        scatter=0.12,
        blur=0.8,
        noise=0.028,
        border=0.14,
        markers=("R", "PORT"),
    ),
}


def acquisition_of(site: str) -> Acquisition:
    """Look up a site's acquisition.

    Args:
        site: "nih" or "chexpert".

    Raises:
        ValueError: The phantom has no such site.
    """
    if site not in SITES:
        raise ValueError(
            f"the phantom needs a site it can imitate; got {site!r}; use one of {sorted(SITES)}."
        )
    return SITES[site]


def project(anatomy: Anatomy, pa: np.ndarray) -> Anatomy:
    """What the chests look like in their view.

    An AP picture is taken close up, mostly of a lying patient: the heart and mediastinum are
    magnified, the diaphragm stands higher.

    Args:
        anatomy: Chests in PA view.
        pa: Whether each picture is PA; the others become AP. Shape (n,), boolean.

    Returns:
        The chests as projected.
    """
    rows = np.flatnonzero(~pa)
    return anatomy.change(
        rows,
        heart_width=anatomy.heart_width[rows] * 1.12,
        mediastinum_width=anatomy.mediastinum_width[rows] * 1.12,
        right_base=anatomy.right_base[rows] - 0.07,
        left_base=anatomy.left_base[rows] - 0.07,
        magnification=anatomy.magnification[rows] * 1.05,
        wall=anatomy.wall[rows] + 0.04,
    )


def expose(density: np.ndarray, site: str, rng: np.random.Generator) -> np.ndarray:
    """Turn density into 8-bit pictures as a site's machine would.

    Args:
        density: Shape (n, size, size), float32.
        site: "nih" or "chexpert".
        rng: Source of exposure, noise, border and markers.

    Returns:
        Shape (n, size, size), uint8; dense is bright.
    """
    machine = acquisition_of(site)
    n, size = len(density), density.shape[-1]
    film = 1 - np.exp(-machine.attenuation * uniform(rng, n, 0.88, 1.12) * np.maximum(density, 0))
    film += machine.blur * (blur(film) - film)
    glare = machine.scatter * (1 + 0.3 * smooth_noise(rng, n, size, 2))
    film += glare * (film.mean(axis=(1, 2), keepdims=True) - film + 0.3)
    low, high = machine.window
    film = (film - low - uniform(rng, n, -0.03, 0.03)) / (high - low) * uniform(rng, n, 0.94, 1.06)
    film += machine.noise * blur(rng.standard_normal(film.shape, dtype=np.float32)) * 1.9
    film = np.clip(film, 0, 1)
    for text in machine.markers:
        film = np.maximum(film, _marker(text, n, size, rng))
    film *= _collimation(machine.border, n, size, rng)
    return (film * np.float32(255) + np.float32(0.5)).astype(np.uint8)


def _marker(text: str, n: int, size: int, rng: np.random.Generator) -> np.ndarray:
    """A lead marker in an upper corner of four pictures out of five."""
    glyph = np.array([[mark == "X" for mark in line] for line in _GLYPHS[text]], dtype=np.float32)
    rows, columns = glyph.shape
    x, y = axes(size)
    scale = uniform(rng, n, 0.028, 0.036)
    if text == "R":
        left = uniform(rng, n, -0.93, -0.82)
    elif text == "L":
        left = uniform(rng, n, 0.7, 0.8)
    else:
        left = uniform(rng, n, 0.3, 0.42)
    top = uniform(rng, n, -0.92, -0.75)
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


def choose_views(site: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Draw "PA" or "AP" for n pictures in the proportion of the site."""
    return np.where(rng.random(n) < acquisition_of(site).pa_share, "PA", "AP")
