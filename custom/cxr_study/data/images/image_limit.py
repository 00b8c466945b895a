"""How many images of a site may be unusable, as a site file says it."""

from __future__ import annotations

import re


def allowed(limit: int | str, total: int) -> int:
    """Say how many images of a total may be unusable.

    Args:
        limit: A number of images such as 3, or a share such as "1%".
        total: Number of images.

    Returns:
        The number; a share is rounded down.

    Raises:
        ValueError: The limit is neither.
    """
    text = str(limit).strip()
    if re.fullmatch(r"\d+", text):
        return int(text)
    if re.fullmatch(r"\d+(\.\d+)?\s*%", text) and (share := float(text[:-1])) <= 100:
        return int(share * total / 100)
    raise ValueError(f"needs a number of images, or a share such as 1%; got {limit!r}.")
