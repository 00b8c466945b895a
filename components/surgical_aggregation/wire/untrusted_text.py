"""Text from the other end, made fit for a log, a terminal or a path."""

import re

LONGEST = 1000
"""Characters of which no more are shown."""


class JobIdError(ValueError):
    """A text is no job's id."""


def one_line(text: str) -> str:
    r"""A text without line ends, terminal escapes and other characters that cannot be printed.

    Whoever writes a site's messages could else put lines of its own into the server's log.

    Returns:
        The text, each such character written as Python escapes it, and no longer than `LONGEST`
        characters before that.

    Example:
        >>> one_line("no\n2026-01-01 - all is well")
        'no\\n2026-01-01 - all is well'
    """
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in shown
    )


def checked_job(job: object) -> str:
    """A job's id as the name of a file or folder, which leads nowhere else.

    Args:
        job: FLARE's UUID, or the simulator's "simulate_job".

    Raises:
        JobIdError: It holds more than ASCII letters, digits, "-" and "_", or nothing.
    """
    if not isinstance(job, str) or not re.fullmatch(r"[\w-]+", job, re.ASCII):
        raise JobIdError(f"a job's id needs letters, digits, '-' and '_' alone; got {job!r}.")
    return job
