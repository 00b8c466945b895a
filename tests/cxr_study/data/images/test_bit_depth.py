from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cxr_study.data.images import bit_depth
from cxr_study.data.images.decoding import decode
from cxr_study.data.images.image_store import prepare
from deep_pictures import png_16


def ramp(bits, seed=0, marked=False):
    """Values up to almost all of the bits, in disorder; perhaps with a marker of 16 bits."""
    values = np.random.default_rng(seed).permutation(np.linspace(0, 0.95 * 2**bits, 1024))
    values = values.astype(np.uint16).reshape(32, 32)
    values[0, 0] = 65535 if marked else values[0, 0]
    return values


def saved(values, kind):
    data = BytesIO()
    options = {"irreversible": False} if kind == "JPEG2000" else {}
    Image.fromarray(values).save(data, kind, **options)
    return data.getvalue()


def site(tmp_path, pictures):
    for number, data in enumerate(pictures):
        (tmp_path / f"{number}.png").write_bytes(data)
    return [str(tmp_path / f"{number}.png") for number in range(number + 1)]


@pytest.mark.parametrize(("write", "bits"), [
    *((lambda seed, n=n: png_16(ramp(n, seed)), n) for n in (16, 13)),
    *((lambda seed, n=n: png_16(ramp(14, seed, marked=True), n), 14) for n in (1, 2, 3, 4)),
    *((lambda seed, kind=kind: saved(ramp(12, seed), kind), 12) for kind in ("TIFF", "JPEG2000")),
    (lambda seed: png_16(ramp(16 if seed == 3 else 12, seed)), 12),  # one is odd
    (lambda seed: png_16(ramp(12, seed), significant=14), 14),
    (lambda seed: png_16(ramp(14, seed) << 2, significant=14), 16),  # scaled up
    (lambda seed: saved(ramp(8, seed).astype(np.uint8), "PNG"), None),
    (lambda seed: b"no picture", None),
])  # fmt: skip
def test_a_sites_bits_are_those_of_many_pictures(tmp_path, write, bits):
    paths = site(tmp_path, map(write, range(40)))
    assert bit_depth.estimate_bits(paths) == bits
    assert bit_depth.estimate_bits(paths[: bit_depth.LEAST - 1]) is None


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("filled", [13, 14, 15, 16])
def test_values_are_scaled_by_the_sites_bits_or_noted(channels, filled):
    data = png_16(ramp(filled, marked=True), channels)
    right = decode(png_16(ramp(16)), 32).pixels.astype(int)
    shown = decode(data, 32, bits=filled)
    off = abs(shown.pixels.astype(int) - right).ravel()[1:]
    assert off.max() <= (1 if channels == 1 else 2 ** (16 - filled))
    assert bool(shown.notes) == (channels > 1 and filled < 16)  # its low bits are not read
    noted = [f"{filled}-bit values in a 16-bit PNG"] * (filled < 16)
    assert [note.partition(":")[0] for note in decode(data, 32).notes] == noted


@pytest.mark.parametrize(("filled", "noted"), [(16, True), (14, False), (13, False), (12, True)])
def test_a_picture_of_other_bits_than_its_sites_is_noted(filled, noted):
    notes = decode(png_16(ramp(filled)), 32, bits=14).notes
    note = f"{filled}-bit values in a 16-bit PNG, where the site's have 14"
    assert notes == ((note,) if noted else ())


@pytest.fixture
def images(cache, tmp_path):
    folder = tmp_path / "images"
    folder.mkdir()
    files = site(folder, [png_16(ramp(14, seed)) for seed in range(20)])

    def prepared(number=20, **options):
        names = [Path(file).name for file in files[:number]]
        return prepare(folder, names, files[:number], 32, **options)

    return prepared


def test_every_picture_of_a_site_is_decoded_alike(images):
    first = images()
    assert (first.bits, set(first.index["notes"])) == (14, {""})
    assert first.pixels.mean() > 110
    assert (images().decoded, images(bits=14).folder) == (0, first.folder)


def test_a_sites_key_comes_first_and_a_few_pictures_are_noted(images):
    given, few = images(bits=15), images(3)
    assert (given.bits, few.bits) == (15, None) and few.pixels.mean() < 40
    assert few.index["notes"].str.startswith("14-bit values in a 16-bit PNG: too dark").all()
    assert len({images().folder, given.folder, few.folder}) == 3
