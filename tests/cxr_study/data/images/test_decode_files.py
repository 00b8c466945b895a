import threading
import time
import warnings

import joblib
import numpy as np
import pytest
from PIL import Image

from cxr_study.data.images import decode_files as module
from cxr_study.data.images.decode_files import decode_files
from cxr_study.data.images.image_journal import CONSTANT, OK, UNREADABLE, ImageJournal
from cxr_study.data.images.image_sources import look_at

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


def test_every_file_is_in_the_journal_as_it_turned_out(images, journal):
    sources = images(a=GRADIENT, flat=Image.new("L", (9, 9), 7), bad=b"no image")
    assert decode_files(sources, journal) == {}
    known = journal.read()
    assert {file: (state.status, state.row) for file, state in known.items()} == {
        "a": (OK, 0),
        "flat": (CONSTANT, -1),
        "bad": (UNREADABLE, -1),
    }
    assert known["bad"].detail == "it is neither PNG, JPEG nor DICOM"
    assert all(known[source.file].stamp == source.stamp for source in sources)


def test_equal_pixels_have_equal_hashes(images, journal):
    decode_files(images(a=GRADIENT, b=GRADIENT, c=GRADIENT.rotate(90)), journal)
    a, b, c = (journal.read()[name].hash for name in "abc")
    assert a == b != c


def test_what_the_system_would_not_let_be_read_is_told_and_not_kept(images, journal, tmp_path):
    sources = images(a=GRADIENT, gone=GRADIENT)
    (tmp_path / "images/gone").unlink()
    assert decode_files(sources, journal) == {"gone": "No such file or directory"}
    assert list(journal.read()) == ["a"]


def test_too_little_memory_says_nothing_about_the_file(images, journal, monkeypatch):
    def fail(data, size):
        raise MemoryError

    monkeypatch.setattr(module, "decode_bytes", fail)
    assert decode_files(images(a=GRADIENT), journal) == {"a": "not enough memory"}
    assert journal.read() == {}


def test_dicom_is_decoded_by_other_processes(images, journal, monkeypatch):
    monkeypatch.setattr(module, "decode_bytes", None)  # in this one
    sources = images(a=bytes(128) + b"DICM" + bytes(100), b=b"no image")
    assert decode_files(sources, journal) == {}
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
