import io
import json
import math
import os
import resource
import zipfile

import numpy as np
import pytest

from surgical_aggregation.checkpoints import checkpoint
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, CheckpointError, load, save

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


def larger(content):
    """The size of the first entry, as its directory states it, is 1 MB."""
    at = content.index(b"PK\1\2") + 24
    return content[:at] + (10**6).to_bytes(4, "little") + content[at + 4 :]


def archive(manifest='{"format": 1}', method=zipfile.ZIP_STORED, **arrays):
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w", method) as opened:
            for name, content in {"manifest.json": manifest, **arrays}.items():
                opened.writestr(name, content)
        return file.getvalue()


def array(shape="(3,)", descr="'<f4'", data=bytes(12)):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + data


def with_facts(**facts):
    return archive(json.dumps({"format": 1, **facts}))


def of_class(**facts):
    return with_facts(classes={"Mass": {"sites": [], **facts}})


OTHER = "is not a checkpoint .*"
ENCRYPTED = archive().replace(b"PK\1\2\x14\3\x14\0\0", b"PK\1\2\x14\3\x14\0\1")
UNKNOWN = archive().replace(b"PK\1\2\x14\3\x14\0\0\0\0", b"PK\1\2\x14\3\x14\0\0\0\x63")
REFUSED = {
    "missing": (None, "does not exist"),
    "a bit flipped": (flipped, f"{OTHER}Bad CRC-32 for file 'conv/kernel.npy'"),
    "truncated": (lambda content: content[:-100], OTHER),
    "newer": (archive('{"format": 3}'), "has format 3; this version reads formats 1 to 2"),
    "encrypted": (ENCRYPTED, f"{OTHER}is encrypted"),
    "unknown compression": (UNKNOWN, f"{OTHER}entries are compressed"),
    "compressed": (archive(a=bytes(9999), method=zipfile.ZIP_DEFLATED), f"{OTHER}are compressed"),
    "larger than the file": (larger, f"{OTHER}larger"),
    "1e12 numbers": (archive(a=array(f"({10**12},)")), f"{OTHER}cannot reshape array of size 3"),
    "dates": (archive(a=array("(1,)", "'<M8[s]'", bytes(8))), f"{OTHER}'a' .* datetime64"),
    "no header": (archive(a=array(descr="-" * 9000 + "1")), OTHER),
    "a formula": (archive(**{"head/=A1/kernel": array()}), f"{OTHER}begin like a formula"),
    "half a class": (archive(**{"head/Mass": array()}), f"{OTHER}head variables are called"),
    "a list": (archive("[]"), f"{OTHER}manifest must be a JSON object; got \\[\\]"),
    "depth": (archive("[" * 100_000), f"{OTHER}recursion"),
    "a long number": (archive(f'{{"format": {"9" * 6000}}}'), f"{OTHER}4300"),
    "no whole number": (with_facts(round=math.nan), f"{OTHER}round: needs a valid integer; got n"),
    "a large number": (with_facts(round=2**31), f"{OTHER}round: needs less than 2147483648"),
    "a large image": (with_facts(image_size=10**6), f"{OTHER}less than or equal to 8192"),
    "an escape": (with_facts(version="\x1b[31m"), rf"{OTHER}printable .* got '\\x1b"),
    "no text": (with_facts(site=["x" * 10**6]), f"{OTHER}site: needs a valid string; got"),
    "rounds": (of_class(rounds=[[1]]), f"{OTHER}classes: Mass: rounds: 0: 1: "),
    "imported": (of_class(imported={}), f"{OTHER}imported: model_sha256: "),
    "refitted": (
        of_class(imported={"model_sha256": "f", "refit": {"site": "a", "images": "<b>"}}),
        f"{OTHER}imported: refit: images: ",
    ),
    "validation": (with_facts(validation=None), f"{OTHER}validation: "),
    "contributed": (with_facts(contributed={"a": [[1]]}), f"{OTHER}contributed: a: 0: "),
    "history": (with_facts(history=[{"job": "a", "rounds": [1]}]), f"{OTHER}history: 0: rounds: "),
}


@pytest.mark.parametrize(("content", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_refused_by_file_and_reason(saved, content, reason):
    if content is None:
        saved.unlink()
    else:
        saved.write_bytes(content(saved.read_bytes()) if callable(content) else content)
    with pytest.raises(CheckpointError, match=rf"model\.npz' {reason}") as got:
        load(saved)
    assert len(str(got.value)) < 1500


def test_fortran_order_and_any_number_are_read(saved):
    for dtype in ("f2", ">f4", "f8", "i8", "u1", "?"):
        values = np.arange(6).reshape(2, 3, order="F").astype(dtype)
        save(Checkpoint({"a": values}), saved)
        np.testing.assert_array_equal(load(saved).variables["a"], values)


def test_where_the_disk_has_no_links_a_copy_is_as_private(saved, monkeypatch):
    monkeypatch.setattr(os, "link", lambda *_: (saved / "a").stat())
    checkpoint.link_or_copy(saved, saved.with_name("second.npz"))
    assert saved.with_name("second.npz").stat().st_mode & 0o777 == 0o600


def test_a_variable_cannot_pass_for_a_moment(tmp_path):
    with pytest.raises(CheckpointError, match=r"begin with '@moments/' are reserved; got"):
        save(Checkpoint({"@moments/a": np.ones(1)}), tmp_path / "model.npz")
    assert not (tmp_path / "model.npz").exists()


def test_digest_depends_on_name_value_dtype_and_shape_and_not_on_order():
    names = [{"a": np.float32([1])}, {"b": np.float32([1])}]
    values = [{"a": np.float32([2])}, {"a": np.float64([1])}, {"a": np.float32([[1]])}]
    assert len({checkpoint.digest(variables) for variables in names + values}) == 5
    assert checkpoint.digest(VARIABLES) == checkpoint.digest(dict(reversed(VARIABLES.items())))
