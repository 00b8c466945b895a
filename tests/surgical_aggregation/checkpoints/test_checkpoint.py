import resource
import zipfile

import numpy as np
import pytest

from surgical_aggregation.checkpoints import checkpoint
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


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model.npz"
    save(Checkpoint(VARIABLES, {"round": 3}), path)
    return path


def test_comes_back_bit_for_bit(saved):
    again = load(saved)
    assert again.manifest == {"format": 1, "round": 3}
    assert list(again.variables) == list(VARIABLES)
    for name, value in VARIABLES.items():
        assert again.variables[name].dtype == value.dtype
        np.testing.assert_array_equal(again.variables[name], value)


def test_equal_models_are_equal_files(saved, tmp_path):
    save(Checkpoint(VARIABLES, {"round": 3}), tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == saved.read_bytes()


def test_numpy_reads_it(saved):
    with np.load(saved) as archive:
        np.testing.assert_array_equal(archive["conv/kernel"], VARIABLES["conv/kernel"])


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(saved, monkeypatch):
    before = saved.read_bytes()

    def disk_full(file, manifest, variables):
        file.write(b"half")
        raise OSError("No space left on device")

    monkeypatch.setattr(checkpoint, "_write", disk_full)
    with pytest.raises(OSError, match="No space"):
        save(Checkpoint({}, {}), saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


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


def test_missing_file_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"nowhere\.npz' does not exist"):
        load(tmp_path / "nowhere.npz")


def test_truncated_file_is_named(saved):
    saved.write_bytes(saved.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=r"model\.npz' is not a checkpoint"):
        load(saved)


def test_flipped_bit_is_noticed(saved):
    content = bytearray(saved.read_bytes())
    content[content.index(VARIABLES["conv/kernel"].tobytes())] ^= 1
    saved.write_bytes(content)
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        load(saved)


def test_numpy_archive_without_manifest_is_refused(tmp_path):
    np.savez(tmp_path / "other.npz", a=np.zeros(1))
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        load(tmp_path / "other.npz")


def test_newer_format_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "new.npz", "w") as archive:
        archive.writestr("manifest.json", '{"format": 3}')
    with pytest.raises(CheckpointError, match="format 3; this version reads formats 1 to 2"):
        load(tmp_path / "new.npz")


MOMENTS = {"mean/conv/kernel": np.float32([[1, 2, 3]]), "mean/head/Nodule/Mass/bias": np.ones(1)}


class TestMoments:
    def test_come_back_apart_from_the_variables(self, tmp_path):
        save(Checkpoint(VARIABLES, {"round": 3}, MOMENTS), tmp_path / "model.npz")
        again = load(tmp_path / "model.npz")
        assert list(again.variables) == list(VARIABLES)
        assert list(again.moments) == list(MOMENTS)
        for name, value in MOMENTS.items():
            assert again.moments[name].tobytes() == value.tobytes()

    def test_a_version_that_knows_none_would_refuse_the_file(self, tmp_path):
        save(Checkpoint(VARIABLES, {}, MOMENTS), tmp_path / "model.npz")
        assert load(tmp_path / "model.npz").manifest["format"] == 2

    def test_without_them_the_file_is_one_that_earlier_versions_read(self, saved):
        assert load(saved).manifest["format"] == 1 and load(saved).moments == {}

    def test_a_model_that_lost_its_moments_is_written_in_the_older_form(self, tmp_path):
        save(Checkpoint(VARIABLES, {}, MOMENTS), tmp_path / "two.npz")
        save(Checkpoint(VARIABLES, load(tmp_path / "two.npz").manifest), tmp_path / "one.npz")
        assert load(tmp_path / "one.npz").manifest["format"] == 1

    def test_a_variable_cannot_pass_for_one(self, tmp_path):
        with pytest.raises(CheckpointError, match=r"begin with '@moments/' are reserved; got"):
            save(Checkpoint({"@moments/a": np.ones(1)}), tmp_path / "model.npz")
        assert not (tmp_path / "model.npz").exists()


class TestDigest:
    def test_does_not_depend_on_the_order(self):
        assert digest(VARIABLES) == digest(dict(reversed(VARIABLES.items())))

    @pytest.mark.parametrize(
        "other",
        [
            {"a": np.float32([2])},
            {"b": np.float32([1])},
            {"a": np.float64([1])},
            {"a": np.float32([[1]])},
        ],
    )
    def test_depends_on_name_value_dtype_and_shape(self, other):
        assert digest(other) != digest({"a": np.float32([1])})
