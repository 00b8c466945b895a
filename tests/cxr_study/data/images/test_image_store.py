import logging
import os
import shutil
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import BrokenExecutor
from unittest.mock import Mock

import joblib
import numpy as np
import pandas as pd
import pytest
from PIL import Image

from cxr_study.data.images import decoding, image_store
from cxr_study.data.images.dicom import MissingDecoderError
from cxr_study.data.images.image_files import ImageError, locate
from cxr_study.data.images.image_store import check_limit, prepare
from dicom_files import dataset, written


@pytest.fixture
def folder(cache, tmp_path):
    (tmp_path / "nih/images").mkdir(parents=True)
    return tmp_path / "nih/images"


def lit(value):
    """Pixels that are light below row `value`."""
    return np.where(np.arange(32)[:, None] < value, 0, 200).repeat(32, axis=1).astype(np.uint8)


@pytest.fixture
def png(folder):
    """Write an image that is light below row `value`."""

    def write(name, value):
        Image.fromarray(lit(value)).save(folder / name)
        return name

    return write


@pytest.fixture
def open_store(folder):
    def open_store(names, size=32, **options):
        files = ["" if file is None else str(file) for file in locate(folder, names)]
        return prepare(folder, names, files, size, **options)

    return open_store


@pytest.fixture
def thirty(png):
    return [png(f"{value:02}.png", value) for value in range(1, 31)]


def light(prepared):
    """First light row of each usable image, as `png` was given."""
    usable = prepared.index[prepared.index["status"] == "ok"]
    return [int((prepared.pixels[row][:, 0] == 0).sum()) for row in usable["row"]]


def test_colour_has_a_store_of_its_own_and_one_colour_is_no_picture(folder, open_store, png):
    green = np.zeros((32, 32, 3), np.uint8)
    green[5:, :, 1] = 200
    Image.fromarray(green).save(folder / "green.png")
    Image.fromarray(np.full_like(green, (9, 0, 0))).save(folder / "red.png")
    names = ["green.png", "red.png", png("grey.png", 5)]
    for _ in range(2):
        prepared = open_store(names, channels=3)
        assert prepared.index["status"].tolist() == ["ok", "constant", "ok"]
        assert prepared.pixels.shape == (2, 32, 32, 3)
        np.testing.assert_array_equal(prepared.pixels[0], green)
    assert prepared.decoded == 0
    assert open_store(names).folder != prepared.folder
    assert open_store(names).pixels.shape == (2, 32, 32)


def test_images_come_in_the_order_asked_for_with_what_is_wrong_with_each(png, open_store, folder):
    for name, value in {"a": 5, "twin": 5, "again": 5, "flat": 0, "b": 3}.items():
        png(f"{name}.png", value)
    (folder / "bad.png").write_bytes(b"no image")
    names = ["b.png", "a.png", "gone.png", "bad.png", "flat.png", "twin.png", "again.png", "a.png"]
    prepared = open_store(names)
    index = prepared.index
    assert list(index) == ["image", "file", "status", "detail", "notes", "view", "row"]
    assert index[["image", "status", "detail", "row"]].to_numpy().tolist() == [
        ["b.png", "ok", "", 0],
        ["a.png", "ok", "", 1],
        ["gone.png", "missing", "", -1],
        ["bad.png", "unreadable", "no readable PNG, JPEG, TIFF, JPEG 2000, WebP, BMP or DICOM", -1],
        ["flat.png", "constant", "", -1],
        ["twin.png", "duplicate", "a.png", -1],
        ["again.png", "duplicate", "a.png", -1],
        ["a.png", "duplicate", "a.png", -1],
    ]
    assert index["file"].tolist()[:3] == [str(folder / "b.png"), str(folder / "a.png"), ""]
    assert light(prepared) == [3, 5]
    assert prepared.pixels.dtype == np.uint8 and prepared.pixels.shape[1:] == (32, 32)
    assert light(open_store(["twin.png"])) == [5]  # its original is not asked for
    none = open_store([])
    assert (len(none.index), none.pixels.shape[1:]) == (0, (32, 32))


def test_only_new_and_changed_files_are_decoded(png, open_store, folder):
    names = [png("a.png", 5), png("b.png", 6), "bad.png"]
    (folder / "bad.png").write_bytes(b"no image")
    before, again = open_store(names), open_store(names)
    assert (before.decoded, again.decoded) == (3, 0)
    pd.testing.assert_frame_equal(before.index, again.index)
    png("b.png", 9)
    png("bad.png", 8)
    seen = []
    names.append(png("new.png", 7))
    after = open_store(names, progress=lambda done, total: seen.append((done, total)))
    assert after.decoded == 3 and seen == [(1, 3), (2, 3), (3, 3)]
    assert light(after) == [5, 9, 8, 7]
    assert light(before) == [5, 6]  # what is open stays as it was


def test_files_that_swap_names_are_decoded_again_with_equal_size_and_time(png, open_store, folder):
    names = ["a.bmp", "b.bmp"]
    for name, value in zip(names, (5, 6), strict=True):
        os.utime(folder / png(name, value), (1e9, 1e9))
    assert light(open_store(names)) == [5, 6]
    for old, new in (("a.bmp", "c"), ("b.bmp", "a.bmp"), ("c", "b.bmp")):
        (folder / old).rename(folder / new)
    assert light(open_store(names)) == [6, 5]


def test_a_moved_cache_is_used_not_moved_images(png, open_store, folder, tmp_path, monkeypatch):
    names = [png("a.png", 5), png("b.png", 6)]
    assert open_store(names).decoded == 2
    shutil.copytree(tmp_path / "cache", tmp_path / "moved")
    monkeypatch.setenv("SURGAGG_CACHE", str(tmp_path / "moved"))
    assert open_store(names).decoded == 0
    folder.rename(tmp_path / "old")
    shutil.copytree(tmp_path / "old", folder)  # keeps the modification times
    again = open_store(names)
    assert (again.decoded, light(again)) == (2, [5, 6])


@pytest.mark.parametrize(("owner", "name", "error", "detail"), [
    (decoding, "file_stamp", PermissionError(13, "Permission denied"), "Permission denied"),
    (Image, "open", MemoryError(), "not enough memory"),
    (Image, "open", MissingDecoderError("needs a decoder"), "needs a decoder"),
])  # fmt: skip
def test_what_was_not_read_is_tried_again(png, open_store, monkeypatch, owner, name, error, detail):
    names = [png("a.png", 5)]
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, Mock(side_effect=error))
        refused = open_store(names).index
    assert refused.loc[0, ["status", "detail"]].tolist() == ["unreadable", detail]
    assert light(open_store(names)) == [5]


def test_a_store_is_of_a_folder_a_size_and_a_recipe(png, open_store, folder, tmp_path, monkeypatch):
    stores = [open_store([png("a.png", 16)], size).folder for size in (32, 8)]
    (tmp_path / "nih/small").mkdir()
    stores.append(prepare(folder.parent / "small", [], [], 8).folder)
    monkeypatch.setattr(image_store, "RECIPE", image_store.RECIPE + 1)
    stores.append(open_store(["a.png"]).folder)
    assert len({store.name for store in stores}) == 4
    assert stores[0].parent == tmp_path / "cache/images"
    kinds = ["nih-images-32-", "nih-images-8-", "nih-small-8-", "nih-images-32-"]
    assert [store.name[:-12] for store in stores] == kinds
    png("b.png", 6)
    link = tmp_path / "link"
    link.symlink_to(folder)
    names = ["b.png", "a.png"]
    other = prepare(link, names, [str(link / name) for name in names], 32)
    assert (other.decoded, light(other), other.index["row"].tolist()) == (1, [6, 16], [1, 0])


@pytest.mark.parametrize("first", ["a DICOM file", "a PNG file"])
def test_dicom_is_read_quietly(png, folder, open_store, monkeypatch, capfd, caplog, recwarn, first):
    names, level = [png("4.png", 4), "5", "6"], logging.getLogger("pydicom").level
    if first == "a DICOM file":
        monkeypatch.setattr(decoding, "decode", None)  # other processes do it
        names = names[1:]
    for value in (5, 6):
        odd = lit(value).tobytes() + bytes(100)  # pydicom remarks on bytes behind the pixels
        (folder / f"{value}.dicom").write_bytes(written(dataset(lit(value), PixelData=odd)))
    assert light(open_store(names)) == [int(name[0]) for name in names]
    assert (capfd.readouterr(), caplog.records, recwarn.list) == (("", ""), [], [])
    assert logging.getLogger("pydicom").level == level


@pytest.mark.skipif(joblib.cpu_count() < 2, reason="needs two threads at once")
def test_threads_that_end_early_do_not_let_others_be_heard(png, folder, open_store, monkeypatch):
    both_started = threading.Barrier(2)

    def decode(data, size, channels, bits):
        both_started.wait(timeout=60)
        if data == slow:
            time.sleep(0.2)
            warnings.warn("an odd file", stacklevel=2)
        return decoding.Decoded(np.eye(size, dtype=np.uint8))

    names = [png("a.png", 1), png("b.png", 2)]
    slow = (folder / "b.png").read_bytes()
    monkeypatch.setattr(decoding, "decode", decode)
    assert open_store(names).index["status"].tolist() == ["ok", "duplicate"]
    with pytest.warns(match="heard again"):
        warnings.warn("heard again", stacklevel=1)


def test_a_kill_and_a_full_cache_are_reported(png, open_store, folder, tmp_path, monkeypatch):
    name = png("a.png", 5)
    (tmp_path / "file").touch()
    message = r"stored in .*/file/images.*Not a directory\. Make room"
    with monkeypatch.context() as patch, pytest.raises(ImageError, match=message):
        patch.setenv("SURGAGG_CACHE", str(tmp_path / "file"))
        open_store([name])

    monkeypatch.setattr(decoding, "decode_files", Mock(side_effect=BrokenExecutor))
    with pytest.raises(ImageError, match=r"was killed, .* memory.*images decoded so far are kept"):
        open_store([name])


def test_too_many_unusable_images_are_counted_by_kind_and_listed(png, open_store, folder):
    (folder / "bad.png").touch()
    gone = [f"gone{i}.png" for i in range(4)]
    prepared = open_store([png("a.png", 5), "bad.png", *gone, png("b.png", 5)])
    assert prepared.problems.parent.stat().st_mode & 0o777 == 0o700  # patients' images
    listed = pd.read_csv(prepared.problems, keep_default_na=False)
    assert listed[["image", "status", "detail"]].to_numpy().tolist() == [
        ["bad.png", "unreadable", "the file is empty"],
        *([name, "missing", ""] for name in gone),
        ["b.png", "duplicate", "a.png"],
    ]
    for size in (0, 10**6, 64.0, "../../32"):
        with pytest.raises(ImageError, match=r"squares of 1 to 2048 pixels a side; got"):
            open_store(["a.png"], size)
    with pytest.raises(ImageError) as error:
        check_limit(prepared, 5, "site.yaml: key 'bad_images'")
    assert str(error.value) == (
        "site.yaml: key 'bad_images' allows 5 of 7 images to be unusable; 6 of 7 are (4 missing, "
        "1 unreadable, 1 duplicate), first bad.png (unreadable: the file is empty), gone0.png "
        "(missing), gone1.png (missing), gone2.png (missing), gone3.png (missing). All are listed "
        f"in {prepared.folder}/problems.csv. Replace their files, or set a higher limit."
    )
    check_limit(prepared, 6, "")
    check_limit(prepared, "86%", "")
    with pytest.raises(ImageError):
        check_limit(prepared, "85%", "")
    assert open_store(["a.png"]).problems.exists() is False


RUN = """
import os, signal, sys
from pathlib import Path
from cxr_study.data.images import decoding, image_journal, image_store

def prepare(**options):
    folder = Path(sys.argv[1])
    files = sorted(folder.iterdir())
    return image_store.prepare(
        folder, [f.name for f in files], [str(f) for f in files], 32, **options)

def die():
    os.kill(os.getpid(), signal.SIGKILL)

decoding._CHUNK = 10
"""

WRITE = """
append = image_journal._append

def write(path, data):
    if path.name != "{file}" or not path.exists():
        return append(path, data)
    append(path, {written})
    die()

image_journal._append = write
prepare()
"""

# How to die, and how many of 30 images are left to decode.
DEATHS = {
    "in the second chunk": ("prepare(progress=lambda done, total: done == 15 and die())", 20),
    "with half a chunk of pixels": (WRITE.format(file="pixels.u8", written="data[:4007]"), 20),
    "with pixels that no line names": (WRITE.format(file="index.jsonl", written="b''"), 20),
    "within a line of the index": (WRITE.format(file="index.jsonl", written="data[:-1]"), 11),
}


FULL = """
import resource
from cxr_study.data.images.dicom import MissingDecoderError
from cxr_study.data.images.image_files import ImageError
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
try:
    prepare()
except ImageError as error:
    print(error)
"""


def start(folder, code):
    command = [sys.executable, "-c", RUN + code, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("death", DEATHS)
def test_a_killed_process_loses_its_chunk_and_nothing_else(thirty, open_store, folder, death):
    code, left = DEATHS[death]
    killed = start(folder, code)
    assert (killed.communicate()[1], killed.returncode) == ("", -9)
    resumed = open_store(thirty)
    assert (resumed.decoded, light(resumed)) == (left, list(range(1, 31)))
    assert open_store(thirty).decoded == 0


def test_two_processes_at_once_decode_every_image_once(thirty, open_store, folder):
    report = "p = prepare(); print(p.decoded, (p.index['status'] == 'ok').sum())"
    both = [start(folder, report) for _ in range(2)]
    (one, error), (other, second) = [process.communicate() for process in both]
    decoded, usable = zip(*(map(int, out.split()) for out in (one, other)), strict=True)
    assert (error + second, sum(decoded), usable) == ("", 30, (30, 30))
    assert light(open_store(thirty)) == list(range(1, 31))


@pytest.mark.parametrize("limit", [15 * 1024, 600])
def test_a_full_disk_is_reported_and_leaves_nothing_half_known(thirty, open_store, folder, limit):
    output, error = start(folder, FULL.format(limit=limit)).communicate()
    assert "decoded images cannot be stored in" in output and "File too large. Make room" in output
    resumed = open_store(thirty)
    assert (error, resumed.decoded) == ("", 20 if limit > 1024 else 30)
    assert light(resumed) == list(range(1, 31))
