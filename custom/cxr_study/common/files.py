"""Files that are written whole or not at all."""

from pathlib import Path


def replace(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the new one, never a part.

    Args:
        path: In a folder that exists.
        text: Written as UTF-8.
    """
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
