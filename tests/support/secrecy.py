"""Searches bytes that somebody received for names."""

import json
import zlib

ARCHIVED = b"PK\x03\x04"
"""Begins every file in a zip archive."""


def names(content, name):
    """Whether bytes hold a name as a serialiser may spell it, in any case of its ASCII letters."""
    escaped = json.dumps(name)[1:-1]
    spelt = {name.encode(), name.encode("utf-16-le"), name.encode("latin-1"), escaped.encode()}
    content = content.lower()
    return any(form.lower() in content for form in spelt)


def unpacked(content):
    """The bytes, and what the zip archives in them hold."""
    parts = [content]
    start = content.find(ARCHIVED)
    while start >= 0:
        name, extra = (content[start + at : start + at + 2] for at in (26, 28))
        data = start + 30 + int.from_bytes(name, "little") + int.from_bytes(extra, "little")
        try:
            parts.append(zlib.decompressobj(-zlib.MAX_WBITS).decompress(content[data:]))
        except zlib.error:
            pass  # stored as it is, so it has been looked at
        start = content.find(ARCHIVED, start + 1)
    return b"\n".join(parts)
