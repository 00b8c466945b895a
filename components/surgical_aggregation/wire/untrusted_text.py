"""Make text from a remote party safe for a log, a terminal or a path; name an error's kind."""

import errno
import re

LONGEST = 1000
"""Characters of a text that are shown."""


def one_line(text: str, longest: int = LONGEST) -> str:
    r"""Escape line ends, terminal escapes and other unprintable characters, as Python does.

    A site could otherwise forge lines of the server's log. Longer texts are first cut to `longest`
    characters.

    Example:
        >>> one_line("no\n2026-01-01 - all is well")
        'no\\n2026-01-01 - all is well'
    """
    shown = text if len(text) <= longest else f"{text[:longest]} ..."
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in shown
    )


def checked_job(job: object) -> str:
    """Return a job's id if it is safe as the name of a file or folder.

    Raises:
        ValueError: It has characters other than ASCII letters, digits, "-" and "_".
    """
    if not isinstance(job, str) or not re.fullmatch(r"[\w-]+", job, re.ASCII):
        raise ValueError(f"a job's id may have only letters, digits, '-' and '_'; got {job!r}.")
    return job


def error_kind(error: BaseException) -> str:
    """Name of an error's class; for an OSError its code, such as "ENOSPC"."""
    code = errno.errorcode.get(error.errno or 0) if isinstance(error, OSError) else None
    return code or type(error).__name__
