import logging
import struct
import threading
import time
import warnings
import zlib
from io import BytesIO

import joblib
import numpy as np
import pydicom
import pytest
from PIL import Image

from cxr_study.data.images import decoding as module
from cxr_study.data.images.decoding import decode_bytes, decode_files, quiet
from cxr_study.data.images.image_files import ImageError, look_at
from cxr_study.data.images.image_journal import CONSTANT, OK, UNREADABLE, ImageJournal
from dicom_files import dataset, written

GREY = np.array([[0, 50], [100, 255]], dtype=np.uint8)


def png(pixels, mode=None, kind="PNG"):
    """The bytes of a file."""
    image, data = Image.fromarray(np.asarray(pixels)), BytesIO()
    (image.convert(mode) if mode else image).save(data, kind)
    return data.getvalue()


def dicom_bytes(pixels, **elements):
    return written(dataset(pixels, **elements))


FLAT = np.full((16, 16, 3), 77, dtype=np.uint8)
DEEP = np.array([[0, 257], [51_600, 65535]], dtype=np.uint16)


class TestDecode:
    @pytest.mark.parametrize(
        ("data", "grey"),
        [
            *((png(GREY, mode), GREY) for mode in ("L", "LA", "RGB", "RGBA", "P")),
            (png(np.dstack([GREY, GREY, GREY, 0 * GREY])), GREY),  # transparency is ignored
            (png(DEEP), [[0, 1], [201, 255]]),  # scaled by its full range
            (png(FLAT, kind="JPEG"), FLAT[..., 0]),
        ],
    )
    def test_every_kind_of_image_becomes_grey(self, data, grey):
        pixels = decode_bytes(data, len(grey))
        assert pixels.dtype == np.uint8
        np.testing.assert_array_equal(pixels, grey)

    def test_reducing_averages_and_does_not_pick(self):
        checks = (np.indices((8, 8)).sum(axis=0) % 2 * 255).astype(np.uint8)
        assert np.all(abs(decode_bytes(png(checks), 2).astype(int) - 127) < 10)

    @pytest.mark.parametrize("write", [png, dicom_bytes])
    def test_an_oblong_is_stretched_to_the_square(self, write):
        left_white = np.repeat([[255, 0]], 8, axis=0).repeat(20, axis=1).astype(np.uint8)
        pixels = decode_bytes(write(left_white), 8)
        assert pixels.shape == (8, 8)
        assert pixels[:, :3].min() == 255 and pixels[:, 5:].max() == 0


def png_with_short_header():
    chunk = b"IHDR" + struct.pack(">II", 2, 2)
    length, checksum = struct.pack(">I", 8), struct.pack(">I", zlib.crc32(chunk))
    return b"\x89PNG\r\n\x1a\n" + length + chunk + checksum


NOISE = np.random.default_rng(0).integers(0, 255, (64, 64), dtype=np.uint8)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (png(NOISE)[:1500], "."),
        (png(NOISE, kind="JPEG")[:1500], "."),
        (dicom_bytes(NOISE)[:1500], "."),
        (b"", "^the file is empty$"),
        (b"<html>404</html>", "^it is neither PNG, JPEG nor DICOM$"),
        (png_with_short_header(), "."),
        (dicom_bytes(GREY, NumberOfFrames=2), "^needs one frame; has 2$"),
        (bytes(128) + b"DICM" + bytes(99), "."),
    ],
)
def test_what_is_no_whole_image_is_refused_with_the_reason(data, message):
    with pytest.raises(ImageError, match=message):
        decode_bytes(data, 2)


def test_remarks_about_files_can_be_silenced(caplog):
    odd = dicom_bytes(GREY).replace(b"1.2.3\0", b"1.02.3")  # no legal identifier
    with pytest.warns(UserWarning, match="Invalid value for VR UI"):
        pydicom.dcmread(BytesIO(odd)).SOPInstanceUID  # noqa: B018
    assert caplog.records
    caplog.clear()
    level = logging.getLogger("pydicom").level
    with quiet(), warnings.catch_warnings(record=True) as heard:
        pydicom.dcmread(BytesIO(odd)).SOPInstanceUID  # noqa: B018
    assert not heard and not caplog.records
    assert logging.getLogger("pydicom").level == level


GRADIENT = Image.linear_gradient("L")


@pytest.fixture
def images(tmp_path):
    """Sources of images that are given as name=picture or name=bytes."""
    folder = tmp_path / "images"
    folder.mkdir()

    def make(**images):
        for name, image in images.items():
            if isinstance(image, bytes):
                (folder / name).write_bytes(image)
            else:
                image.save(folder / name, "PNG")
        return look_at(folder, list(images), [str(folder / name) for name in images])[0]

    return make


@pytest.fixture
def journal(tmp_path):
    return ImageJournal(tmp_path, 4)


def test_every_file_is_in_the_journal_as_it_turned_out(images, journal, tmp_path):
    pictures = {"a": GRADIENT, "b": GRADIENT, "c": GRADIENT.rotate(90)}
    sources = images(**pictures, flat=Image.new("L", (9, 9), 7), bad=b"no image", gone=GRADIENT)
    (tmp_path / "images/gone").unlink()
    assert decode_files(sources, journal) == {"gone": "No such file or directory"}
    known = journal.read()
    assert {file: (state.status, state.row) for file, state in known.items()} == {
        **{"a": (OK, 0), "b": (OK, 1), "c": (OK, 2)},
        **{"flat": (CONSTANT, -1), "bad": (UNREADABLE, -1)},
    }
    assert known["bad"].detail == "it is neither PNG, JPEG nor DICOM"
    assert all(known[source.file].stamp == source.stamp for source in sources[:-1])
    assert known["a"].hash == known["b"].hash != known["c"].hash


def test_too_little_memory_says_nothing_about_the_file(images, journal, monkeypatch):
    def fail(*arguments, **options):
        raise MemoryError

    sources = images(a=GRADIENT)
    monkeypatch.setattr(Image, "open", fail)
    assert decode_files(sources, journal) == {"a": "not enough memory"}
    assert journal.read() == {}


def test_dicom_is_decoded_by_other_processes(images, journal, monkeypatch):
    monkeypatch.setattr(module, "decode_bytes", None)  # in this one
    assert decode_files(images(a=bytes(128) + b"DICM" + bytes(9), b=b"no image"), journal) == {}
    assert [known.status for known in journal.read().values()] == [UNREADABLE, UNREADABLE]


@pytest.mark.skipif(joblib.cpu_count() < 2, reason="needs two threads at once")
def test_threads_that_end_early_do_not_let_others_be_heard(images, journal, monkeypatch):
    both_started = threading.Barrier(2)

    def decode(data, size):
        both_started.wait(timeout=10)
        if data == b"slow":
            time.sleep(0.2)
            warnings.warn("an odd file", stacklevel=2)
        return np.eye(size, dtype=np.uint8)

    monkeypatch.setattr(module, "decode_bytes", decode)
    assert decode_files(images(first=b"fast", last=b"slow"), journal) == {}
    with pytest.warns(match="heard again"):
        warnings.warn("heard again", stacklevel=1)


def test_chunks_come_one_after_the_other_and_progress_ends_at_the_total(
    images, journal, monkeypatch
):
    monkeypatch.setattr(module, "_CHUNK", 2)
    pictures = {f"image{i}": GRADIENT.rotate(i) for i in range(5)}
    seen = []

    def progress(done, total):
        seen.append((done, total, len(journal.read())))

    decode_files(images(**pictures), journal, progress)
    assert seen == [(1, 5, 0), (2, 5, 0), (3, 5, 2), (4, 5, 2), (5, 5, 4)]
    assert [known.row for known in journal.read().values()] == [0, 1, 2, 3, 4]
