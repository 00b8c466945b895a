import os

import pytest

from flare import Engine, context
from surgical_aggregation.checkpoints.checkpoint import CheckpointError
from surgical_aggregation.server.models.model_files import checkpoint_of


@pytest.fixture
def left(tmp_path):
    """Let jobs have left a file at the server, one after another; the context of a job there."""

    def make(*jobs, name="last.npz"):
        for second, job in enumerate(jobs):
            file = tmp_path / "server" / "checkpoints" / job / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
            os.utime(file, (second, second))
        return context(engine=Engine(tmp_path))

    return make


@pytest.mark.parametrize(("asked", "found"), [("a", "a"), ("lost,b,a", "b"), ("lost, b", "b")])
def test_finds_the_file_of_the_first_job_that_left_one(left, tmp_path, asked, found):
    path = checkpoint_of(asked, "last.npz", left("a", "b"))
    assert path == tmp_path / f"server/checkpoints/{found}/last.npz"


def test_the_refusal_names_the_newest_jobs_first_and_no_more_than_ten(left):
    with pytest.raises(CheckpointError, match="the newest first: none"):
        checkpoint_of("a", "last.npz", left())
    left("a", name="best.npz")  # another file alone
    with pytest.raises(CheckpointError, match=r"'a' left none in .* the newest first: b\.$"):
        checkpoint_of("a", "last.npz", left("b"))
    with pytest.raises(CheckpointError) as error:
        checkpoint_of("x", "last.npz", left(*(f"job{number:02}" for number in range(12))))
    assert str(error.value).endswith(f"{', '.join(f'job{n:02}' for n in range(11, 1, -1))}.")
