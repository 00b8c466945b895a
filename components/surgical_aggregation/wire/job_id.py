"""The id of a job, where it becomes part of a path."""

import re


class JobIdError(ValueError):
    """A text is no job's id."""


def checked(job: object) -> str:
    """A job's id as the name of a file or folder, which leads nowhere else.

    Args:
        job: FLARE's UUID, or the simulator's "simulate_job".

    Raises:
        JobIdError: It holds more than ASCII letters, digits, "-" and "_", or nothing.
    """
    if not isinstance(job, str) or not re.fullmatch(r"[\w-]+", job, re.ASCII):
        raise JobIdError(f"a job's id needs letters, digits, '-' and '_' alone; got {job!r}.")
    return job
