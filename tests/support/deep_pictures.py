"""PNG files of 16 bits, as Pillow does not write them: in colour, with alpha, with sBIT."""

import struct
import zlib

import numpy as np

COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}


def png_16(values, channels=1, significant=0):
    """A PNG of the same values in each channel; `significant` bits, if any, in the chunk sBIT."""
    values = np.repeat(np.asarray(values, ">u2")[..., None], channels, axis=2)
    rows = b"".join(b"\0" + row.tobytes() for row in values)
    size = struct.pack(">II", values.shape[1], values.shape[0])
    chunks = [(b"IHDR", size + bytes([16, COLOUR_TYPES[channels], 0, 0, 0]))]
    chunks += [(b"sBIT", bytes([significant] * channels))] if significant else []
    chunks += [(b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in chunks
    )
