"""Text from the other end, made safe for a log, a terminal or a path; an error in one word."""

import errno
import re

LONGEST = 1000
"""Longest text that is shown, in characters."""


def one_line(text: str) -> str:
    r"""Escape line ends, terminal escapes and other unprintable characters, as Python does.

    A site could otherwise write lines of its own into the server's log. Longer texts are cut to
    `LONGEST` characters first.

    Example:
        >>> one_line("no\n2026-01-01 - all is well")
        'no\\n2026-01-01 - all is well'
    """
    shown = text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in shown
    )


def checked_job(job: object) -> str:
    """A job's id as the name of a file or folder.

    Raises:
        ValueError: It is not made of ASCII letters, digits, "-" and "_".
    """
    if not isinstance(job, str) or not re.fullmatch(r"[\w-]+", job, re.ASCII):
        raise ValueError(f"a job's id needs letters, digits, '-' and '_' alone; got {job!r}.")
    return job


def error_kind(error: BaseException) -> str:
    """Name of an error's class; of one of the system its code, such as "ENOSPC"."""
    code = errno.errorcode.get(error.errno or 0) if isinstance(error, OSError) else None
    return code or type(error).__name__
