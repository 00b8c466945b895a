"""What to look for in bytes that a site received."""

import json
import zlib

ARCHIVED = b"PK\x03\x04"
"""Begins every file in a zip archive."""


def forms(name):
    """Spellings of a name that a serialiser might use; ASCII letters in lower case."""
    escaped = json.dumps(name)[1:-1]
    spelt = {name.encode(), name.encode("utf-16-le"), name.encode("latin-1"), escaped.encode()}
    return {form.lower() for form in spelt}


def names(content, name):
    """Whether bytes hold a name in any spelling, in any case of its ASCII letters."""
    content = content.lower()
    return any(form in content for form in forms(name))


def unpacked(content):
    """The bytes, and what the zip archives in them hold."""
    parts = [content]
    start = content.find(ARCHIVED)
    while start >= 0:
        lengths = [
            int.from_bytes(content[start + at : start + at + 2], "little") for at in (26, 28)
        ]
        compressed = content[start + 30 + sum(lengths) :]
        try:
            parts.append(zlib.decompressobj(-zlib.MAX_WBITS).decompress(compressed))
        except zlib.error:
            pass  # stored as it is, so it has been looked at
        start = content.find(ARCHIVED, start + 1)
    return b"\n".join(parts)
