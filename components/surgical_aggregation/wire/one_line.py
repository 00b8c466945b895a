"""Text of somebody else's, fit to stand in a line of a log or on a terminal."""

LONGEST = 1000
"""Characters of which no more are shown."""


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
