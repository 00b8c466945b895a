"""Image files as they are now."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cxr_study.data.images.image_journal import Known


@dataclass(frozen=True)
class Source:
    """An image and its file.

    Attributes:
        image: Name of the image.
        path: Absolute path of the file, "" where there is none.
        file: The path relative to the images folder.
        stamp: Length and time of change (ns); None where there is no file to look at.
    """

    image: str
    path: str
    file: str
    stamp: tuple[int, int] | None


def file_stamp(path: str) -> tuple[int, int]:
    """Return length and time of change (ns) of a file.

    Raises:
        OSError: There is no file, or it cannot be looked at.
    """
    status = os.stat(path)  # noqa: PTH116 - pathlib takes several times as long
    return status.st_size, status.st_mtime_ns


def look_at(
    folder: Path, images: Iterable[str], files: Iterable[str]
) -> tuple[list[Source], dict[str, str]]:
    """Find out how the files of images are now.

    Args:
        folder: The images folder, absolute.
        images: Names of the images.
        files: Path of each image's file, "" where there is none.

    Returns:
        One source per image, and why some files cannot be looked at, by `Source.file`.
    """
    inside = f"{folder}{os.sep}"
    sources, failures = [], {}
    for image, path in zip(images, files, strict=True):
        file = path[len(inside) :] if path.startswith(inside) else path
        stamp = None
        try:
            stamp = file_stamp(path) if path else None
        except FileNotFoundError:
            pass
        except OSError as error:
            failures[file] = str(error.strerror)
        sources.append(Source(image, path, file, stamp))
    return sources, failures


def undecoded(known: Mapping[str, Known], sources: Iterable[Source]) -> list[Source]:
    """Choose the files that were never decoded as they are now, each once.

    Args:
        known: What `ImageJournal.read` returns.
        sources: Images.
    """
    todo = {
        source.file: source
        for source in sources
        if source.stamp is not None
        and (source.file not in known or known[source.file].stamp != source.stamp)
    }
    return list(todo.values())
