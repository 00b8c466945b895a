import struct
import zlib
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from cxr_study.data.images.decoding import decode
from cxr_study.data.images.image_files import ImageError
from dicom_files import dataset, written

GREY = np.array([[0, 50], [100, 255]], dtype=np.uint8)
FLAT = np.full((16, 16, 3), 77, dtype=np.uint8)
DEEP = np.array([[0, 257], [51_600, 65535]], dtype=np.uint16)
NOISE = np.random.default_rng(0).integers(0, 255, (64, 64), dtype=np.uint8)


def png(pixels, mode=None, kind="PNG", **options):
    """The bytes of a file."""
    image, data = Image.fromarray(np.asarray(pixels)), BytesIO()
    (image.convert(mode) if mode else image).save(data, kind, **options)
    return data.getvalue()


def tiff(pixels, bits, black, form=1):
    """A TIFF of 2 x 2 pixels; `black` is 1 where 0 is black, `form` its sample format."""
    body = np.asarray(pixels).tobytes()
    tags = {256: 2, 257: 2, 258: bits, 259: 1, 262: black, 273: 8, 277: 1, 278: 2}
    tags |= {279: len(body), 339: form}
    fields = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    head = b"II*\0" + struct.pack("<I", 8 + len(body))
    return head + body + struct.pack("<H", len(tags)) + fields + bytes(4)


NOISE_16 = np.random.default_rng(0).integers(0, 65536, (64, 64), dtype=np.uint16)
SHOWN = [[0, 1], [201, 255]]  # of DEEP
NOISES = ((NOISE, NOISE), (NOISE_16, np.rint(NOISE_16 / 65535 * 255)))


def dicom_bytes(pixels, **elements):
    return written(dataset(pixels, **elements))


def grey_of(data, size):
    return decode(data, size).pixels


COLOURED = np.dstack([GREY, GREY[::-1], GREY[:, ::-1]])


@pytest.mark.parametrize(("data", "shown"), [
    *((png(GREY, mode), GREY) for mode in ("L", "LA", "RGB", "RGBA", "P")),
    (png(np.dstack([GREY, GREY, GREY, 0 * GREY])), GREY),  # transparency is ignored
    (png(DEEP), SHOWN),  # scaled by its full range
    (png(FLAT, kind="JPEG"), FLAT[..., 0]), (dicom_bytes(GREY), GREY),
    *((png(pixels, kind="TIFF", compression=how, tiffinfo={262: 1}), as_png)
     for how in (None, "tiff_lzw", "tiff_adobe_deflate") for pixels, as_png in NOISES),
    *((png(pixels, kind="JPEG2000", irreversible=False, no_jp2=bare), as_png)
     for bare in (False, True) for pixels, as_png in NOISES),
    *((png(NOISE, kind=kind, lossless=True), NOISE) for kind in ("WEBP", "BMP")),
    # Where white is 0, the picture is turned; 12 bits are all of it.
    (png(NOISE, kind="TIFF", compression="tiff_lzw", tiffinfo={262: 0}), NOISE),
    (png(65535 - DEEP, kind="TIFF", compression="tiff_lzw", tiffinfo={262: 0}), SHOWN),
    (tiff(255 - GREY, 8, 0), GREY), (tiff(65535 - DEEP, 16, 0), SHOWN),
    (tiff(np.array([0, 8, 0, 255, 255, 255], np.uint8), 12, 1), [[0, 128], [255, 255]]),
    # Colours, where those are asked for.
    (png(COLOURED), COLOURED), (png(np.dstack([COLOURED, 0 * GREY])), COLOURED),
    *((data, np.dstack([GREY] * 3)) for data in (png(GREY), dicom_bytes(GREY))),
    (png(DEEP), np.dstack([SHOWN] * 3)), (png(FLAT, kind="JPEG"), FLAT),
])  # fmt: skip
def test_every_kind_of_image_becomes_grey_or_of_colour_as_asked_for(data, shown):
    shown = np.uint8(shown)
    pixels = decode(data, len(shown), 3 if shown.ndim == 3 else 1).pixels
    np.testing.assert_array_equal(pixels, shown, strict=True)


@pytest.mark.parametrize("write", [png, dicom_bytes])
@pytest.mark.parametrize("shape", [(300, 40), (40, 300), (90, 90), (24, 70), (70, 24)])
def test_images_are_stretched_width_before_height_with_every_version_of_pillow(write, shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    one_axis = Image.fromarray(pixels).resize((24, shape[0]), Image.Resampling.BILINEAR)
    expected = np.asarray(one_axis.resize((24, 24), Image.Resampling.BILINEAR))
    np.testing.assert_array_equal(grey_of(write(pixels), 24), expected)


def png_with_short_header():
    chunk = b"IHDR" + struct.pack(">II", 2, 2)
    length, checksum = struct.pack(">I", 8), struct.pack(">I", zlib.crc32(chunk))
    return b"\x89PNG\r\n\x1a\n" + length + chunk + checksum


@pytest.mark.parametrize(("data", "message"), [
    (png(NOISE)[:1500], "."), (png(NOISE, kind="JPEG")[:1500], "."),
    (dicom_bytes(NOISE)[:1500], "."), (b"", "^the file is empty$"),
    (b"<html>404</html>", "^no readable PNG, JPEG, TIFF, JPEG 2000, WebP, BMP or DICOM$"),
    *((tiff(np.zeros((2, 2), kind), 8 * np.dtype(kind).itemsize, 1, form), "needs 8 or 16 uns")
     for kind, form in (("<f4", 3), ("<u4", 1), ("<i2", 2))),
    (png(GREY, kind="TIFF", save_all=True, append_images=[Image.fromarray(GREY)]),
     "^needs one image; the TIFF has 2$"),
    (png_with_short_header(), "."),
    (dicom_bytes(GREY, NumberOfFrames=2), "^needs one frame; has 2$"),
    (bytes(128) + b"DICM" + bytes(99), "."),
])  # fmt: skip
def test_what_is_no_whole_image_is_refused_with_the_reason(data, message):
    with pytest.raises(ImageError, match=message):
        grey_of(data, 2)


@pytest.mark.parametrize("shape", [(2021, 2022), (1501, 2999), (900, 1201)])
def test_a_large_jpeg_is_where_the_same_png_is(shape):
    """A JPEG decodes at reduced scale, whose last pixels may lie beyond the image."""
    smooth = Image.fromarray(np.random.default_rng(0).integers(0, 256, (12, 12), np.uint8))
    image = smooth.resize(shape, Image.Resampling.BICUBIC)
    jpeg = png(image, kind="JPEG", quality=95)
    for size in (64, 224):
        pixels, expected = (grey_of(each, size) for each in (jpeg, png(image)))
        assert abs(pixels.astype(int) - expected).mean() < 0.5


STORED = dict(zip(range(2, 9), (
    Image.Transpose.FLIP_LEFT_RIGHT, Image.Transpose.ROTATE_180, Image.Transpose.FLIP_TOP_BOTTOM,
    Image.Transpose.TRANSPOSE, Image.Transpose.ROTATE_90, Image.Transpose.TRANSVERSE,
    Image.Transpose.ROTATE_270), strict=True))  # fmt: skip
"""Orientation in Exif -> how a picture is stored that it turns back."""


@pytest.mark.parametrize("orientation", [1, *STORED])
@pytest.mark.parametrize(
    ("kind", "off"), [("PNG", 0), ("TIFF", 0), ("WEBP", 0), ("JPEG", 3), ("16-bit PNG", 0)]
)
def test_a_picture_that_exif_turns_is_shown_upright(kind, off, orientation):
    small = Image.fromarray(np.random.default_rng(0).integers(0, 256, (5, 4), np.uint8))
    upright = small.resize((257, 385), Image.Resampling.BICUBIC)
    if kind == "16-bit PNG":
        upright = Image.fromarray(np.asarray(upright, np.uint16) * 257)
    how = STORED.get(orientation)
    exif = Image.Exif()
    exif[274] = orientation
    options = {"quality": 95} if kind == "JPEG" else {"lossless": True} if kind == "WEBP" else {}
    data = png(upright if how is None else upright.transpose(how), kind=kind.split()[-1],
               exif=exif, **options)  # fmt: skip
    shown = decode(data, 16)  # a JPEG that is not turned decodes at an eighth
    assert not shown.notes
    assert abs(shown.pixels.astype(int) - grey_of(png(upright), 16)).max() <= off


def test_exif_that_cannot_be_read_is_noted():
    broken = png(GREY, exif=b"Exif\0\0nothing")
    assert decode(broken, 2).notes == ("its Exif cannot be read",)
    np.testing.assert_array_equal(grey_of(broken, 2), GREY)


def test_what_a_file_says_against_itself_is_noted():
    lateral = decode(dicom_bytes(GREY, Modality="CT", ViewPosition="LL"), 2)
    assert (lateral.notes, lateral.view) == (("modality CT",), "LL")
    twelve = np.array([[0, 4095], [7, 8]], np.uint16)
    assert not decode(png(twelve * 16), 2).notes
    assert decode(tiff(twelve, 16, 0), 2).notes[0].startswith("12-bit values in a 16-bit TIFF")
    assert not decode(png(GREY), 2).notes
