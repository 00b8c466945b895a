import io
import json
import os
import resource
import zipfile

import numpy as np
import pytest

from surgical_aggregation.checkpoints import checkpoint
from surgical_aggregation.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointError,
    digest,
    give_second_name,
    load,
    save,
)

VARIABLES = {
    "conv/kernel": np.arange(6, dtype=np.float32).reshape(2, 3),
    "head/Nodule/Mass/kernel": np.float16([1, 2]),
    "head/Épanchement pleural/bias": np.float64([3]),
    "file": np.float32([0]),
}


MOMENTS = {"mean/conv/kernel": np.float32([[1, 2, 3]]), "mean/head/Nodule/Mass/bias": np.ones(1)}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.npz"
    save(Checkpoint(VARIABLES, {"round": 3}), path)
    return path


@pytest.mark.parametrize(("moments", "layout"), [({}, 1), (MOMENTS, 2)])
def test_comes_back_bit_for_bit_and_equal_models_are_equal_files(moments, layout, tmp_path):
    """A version without moments refuses format 2, which has them."""
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    save(Checkpoint(VARIABLES, {"round": 3, "format": 2}, moments), one)
    again = load(one)
    assert again.manifest == {"format": layout, "round": 3}
    for read, written in ((again.variables, VARIABLES), (again.moments, moments)):
        assert list(read) == list(written)
        for name, value in written.items():
            assert read[name].dtype == value.dtype
            np.testing.assert_array_equal(read[name], value)
    save(again, other)
    assert one.read_bytes() == other.read_bytes()
    assert {entry.date_time[0] for entry in zipfile.ZipFile(one).infolist()} == {1980}  # no clock
    with np.load(one) as archive:
        np.testing.assert_array_equal(archive["conv/kernel"], VARIABLES["conv/kernel"])


def test_a_disk_that_takes_no_more_leaves_the_old_file_and_nothing_else(saved):
    before = saved.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before), limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            save(Checkpoint({"dense/kernel": np.zeros(len(before))}, {}), saved)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def flipped(content):
    at = content.index(VARIABLES["conv/kernel"].tobytes())
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def archive(method=zipfile.ZIP_STORED, arrays=(), **files):
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w", method) as opened:
            for name, text in files.items():
                opened.writestr(f"{name}.json", text)
            for name, content in arrays:
                opened.writestr(name, content)
        return file.getvalue()


def with_array(*contents, method=zipfile.ZIP_STORED, name="a.npy"):
    arrays = zip((name, name.removesuffix(".npy")), contents, strict=False)
    return archive(method, arrays, manifest='{"format": 1}')


def array(shape="(3,)", descr="'<f4'", data=bytes(12)):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + data


def marked(content, flags):
    """Every entry with such flags, in both of its headers."""
    for header, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        head, *rest = content.split(header)
        at -= len(header)
        rest = [part[:at] + bytes([part[at] | flags]) + part[at + 1 :] for part in rest]
        content = header.join([head, *rest])
    return content


def test_fortran_order_and_any_number_are_read(saved):
    for dtype in ("f2", ">f4", "f8", "i8", "u1", "?"):
        values = np.arange(6).reshape(2, 3, order="F").astype(dtype)
        save(Checkpoint({"a": values}), saved)
        np.testing.assert_array_equal(load(saved).variables["a"], values)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (with_array(array(f"({10**12},)")), "entry 'a': 12 bytes are no numbers of shape"),
        (with_array(array("(-1, -3)")), r"12 bytes are no numbers of shape \(-1, -3\)"),
        (with_array(array("(0, 1" + "0" * 30 + ")", data=b"")), "entry 'a': .* too large"),
        (with_array(array(descr="'<f16'", data=bytes(48))), "dtype float128"),
        (with_array(array("(1,)", "'<M8[s]'", bytes(8))), r"dtype datetime64\[s\]"),
        (with_array(array("(3,)", "'|O'")), "dtype object"),
        (with_array(array("(3,)", "'<U1'")), "dtype <U1"),
        (with_array(array()[:20]), "'a': EOF: reading array header"),
        (with_array(b""), "'a': EOF: reading magic string"),
        (with_array(array(descr="-" * 9000 + "1")), "'a': "),
        (with_array(array(), array()), "entry 'a' stands twice"),
        (archive(arrays=[("manifest.json.npy", "")], manifest="{}"), "json' stands twice"),
        (with_array(array(), method=zipfile.ZIP_DEFLATED), "is compressed; a checkpoint's entries"),
        (with_array(array(), method=zipfile.ZIP_LZMA), "is compressed"),
        (with_array(array("(99999,)", "'|b1'", bytes(99999)), method=zipfile.ZIP_BZIP2), "larger"),
        (marked(with_array(array()), 1), r"entry 'manifest\.json': .* is encrypted"),
        (with_array(array(), name="head/=HYPERLINK(1)/kernel.npy"), "begin as formulas do"),
        (with_array(array(), name="head/Mass.npy"), "head variables are called"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_archive_of_another_kind_is_refused_by_file_and_entry(saved, content, reason):
    saved.write_bytes(content)
    with pytest.raises(
        CheckpointError, match=rf"model\.npz' is not a checkpoint .*{reason}"
    ) as got:
        load(saved)
    assert len(str(got.value)) < 1500


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ("[]", r"entry 'manifest\.json': needs facts by name; got \[\]"),
        ('"text"', "needs facts by name; got 'text'"),
        ("[" * 100_000, r"entry 'manifest\.json': recursion limit"),
        ('{"format": 1, "x": ' + "9" * 6000 + "}", r"entry 'manifest\.json': number out of range"),
        ({"round": float("nan")}, "its manifest: round: needs a valid integer; got nan"),
        ({"round": 2**31}, "round: needs less than 2147483648"),
        ({"image_size": 10**6}, "image_size: needs less than or equal to 8192"),
        ({"created": ["<script>"]}, "created: needs a valid string"),
        ({"version": "\x1b[31m"}, r"version: needs printable text in one line; got '\\x1b"),
        ({"site": ["x" * 10**6]}, "site: needs a valid string; got"),
        ({"classes": [1]}, "classes: needs a valid dictionary"),
        ({"classes": {"Mass": {"sites": "a"}}}, "classes: Mass: sites: needs a valid list"),
        ({"classes": {"Mass": {"sites": [], "rounds": [[1]]}}}, "rounds: 0: 1: "),
        ({"classes": {"Mass": {"sites": [], "imported": {}}}}, "imported: model_sha256: "),
        ({"validation": {"round": 1, "auroc": {"a": {"Mass": float("inf")}}}}, "a finite number"),
        ({"validation": None}, "validation: "),
        ({"best": {"value": 1}}, "best: round: "),
        ({"history": [{"job": "a", "rounds": [1]}]}, "history: 0: rounds: 1: "),
        ({"removed": {"Mass": 1}}, "removed: Mass: "),
        ({"variable_kinds": {"batch_norm": 1}}, "variable_kinds: "),
        ({"features": 1}, "features: "),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_manifest_is_what_its_readers_need(saved, manifest, reason):
    facts = isinstance(manifest, dict)
    text = json.dumps({"format": 1, **manifest}) if facts else manifest
    saved.write_bytes(archive(manifest=text))
    with pytest.raises(
        CheckpointError, match=rf"model\.npz' is not a checkpoint .*{reason}"
    ) as got:
        load(saved)
    assert len(str(got.value)) < 1500
    if facts:
        assert checkpoint.read(saved).manifest.keys() == {
            "format",
            *manifest,
        }  # a site's state has others


def test_a_manifest_without_end_is_not_read(saved, monkeypatch):
    monkeypatch.setattr(checkpoint.manifest_form, "LARGEST", 20)
    with pytest.raises(CheckpointError, match=r"'manifest\.json' has more than 20 bytes"):
        load(saved)


def test_where_the_disk_has_no_links_a_copy_is_as_private(saved, monkeypatch):
    monkeypatch.setattr(os, "link", lambda *_: (saved / "a").stat())
    give_second_name(saved, saved.with_name("second.npz"))
    assert saved.with_name("second.npz").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda _: None, r"model\.npz' does not exist"),
        (lambda content: content[:-100], r"model\.npz' is not a checkpoint"),
        (flipped, "not a checkpoint"),
        (lambda _: archive(other="{}"), "not a checkpoint"),
        (lambda _: archive(manifest='{"format": 3}'), "3; this version reads formats 1 to 2"),
    ],
    ids=["missing", "truncated", "a bit flipped", "no manifest", "newer"],
)
def test_what_cannot_be_read_is_refused(saved, damage, reason):
    content = damage(saved.read_bytes())
    saved.unlink() if content is None else saved.write_bytes(content)
    with pytest.raises(CheckpointError, match=reason):
        load(saved)


def test_a_variable_cannot_pass_for_a_moment(tmp_path):
    with pytest.raises(CheckpointError, match=r"begin with '@moments/' are reserved; got"):
        save(Checkpoint({"@moments/a": np.ones(1)}), tmp_path / "model.npz")
    assert not (tmp_path / "model.npz").exists()


def test_digest_depends_on_name_value_dtype_and_shape_and_not_on_order():
    names = [{"a": np.float32([1])}, {"b": np.float32([1])}]
    values = [{"a": np.float32([2])}, {"a": np.float64([1])}, {"a": np.float32([[1]])}]
    assert len({digest(variables) for variables in names + values}) == 5
    assert digest(VARIABLES) == digest(dict(reversed(VARIABLES.items())))
