import io
import resource
import zipfile

import numpy as np
import pytest

from surgical_aggregation.checkpoints.checkpoint import (
    Checkpoint,
    CheckpointError,
    digest,
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


def archive(**files):
    with io.BytesIO() as file:
        with zipfile.ZipFile(file, "w") as opened:
            for name, text in files.items():
                opened.writestr(f"{name}.json", text)
        return file.getvalue()


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
