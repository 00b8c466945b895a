"""Files that are written whole or not at all."""

from pathlib import Path


def replace(path: Path, text: str) -> None:
    """Write a file as UTF-8 so that a reader sees the old one or the new one, never a part."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
