"""Find image files below a folder, however a data set was unpacked, and read their state."""
# ruff: noqa: PTH100, PTH113, PTH116, PTH117, PTH118, PTH121, PTH206
# pathlib takes several times as long over 400,000 files.

import hashlib
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

SUFFIXES = ("png", "jpg", "jpeg", "tif", "tiff", "jp2", "j2k", "webp", "bmp", "dcm", "dicom")
"""Suffixes of image files, in lower case."""

_BEGINNING = 4096  # bytes in which most files of equal length differ


class ImageError(ValueError):
    """Image files are ambiguous, or cannot be read, decoded or stored."""


def relative_path(folder: Path, path: str) -> str:
    """Write a path with forward slashes and, if it is below a folder, relative to it.

    Args:
        folder: The folder; its path is compared both as it is and with links resolved.
        path: Of a relative path, and an absolute one outside the folder, only slashes change.
    """
    path = path.replace("\\", "/")
    for root in (os.path.abspath(folder), os.path.realpath(folder)) if _leaves(path) else ():
        path = path.removeprefix(f"{Path(root).as_posix().rstrip('/')}/")
    return path


def locate(
    folder: Path, images: Iterable[str], identifying: int = 1, nested: bool = False
) -> list[Path | None]:
    """Find the files of images.

    An image is the file at its path or, if there is none, the file below the folder with the same
    last `identifying` path components, suffix aside. So CheXpert's
    `CheXpert-v1.0/train/patient00001/study1/view1.jpg` is found in the small version, and NIH's
    `00000001_000.png` in `images_001/images/` or resized as `.jpg`. If the whole path identifies an
    image, only a missing suffix is completed. Names are compared in Unicode's normal form C,
    because macOS writes an umlaut as two characters. Paths cannot lead out of the folder, but links
    in it may.

    The tree is walked at most once. Links are followed; hidden folders, unreadable folders and
    other suffixes are skipped. A file that is reached by two paths counts once.

    Args:
        folder: The images folder.
        images: Paths relative to it, with forward slashes; the suffix may be missing.
        identifying: Number of trailing path components that identify an image; 0: the whole path.
        nested: Whether a path may be the end of a longer one.

    Returns:
        One path per image, in order; None where there is no file.

    Raises:
        ImageError: Two files match an image that is not at its path.
    """
    images = [relative_path(folder, image) for image in images]
    there = ["" if nested or _leaves(image) else os.path.join(folder, image) for image in images]
    files = [path if os.path.isfile(path) else None for path in there]
    tails = {
        image: _tail(image.split("/"), identifying)
        for image, file in zip(images, files, strict=True)
        if file is None
    }
    wanted = set(tails.values())
    if identifying or nested or any(not tail.isascii() or tail == _stem(tail) for tail in wanted):
        found = _search(os.path.abspath(folder), wanted, identifying, nested) if wanted else {}
        files = [file or found.get(tails[image]) for image, file in zip(images, files, strict=True)]
    return [None if file is None else Path(file) for file in files]


@dataclass(frozen=True)
class Source:
    """An image and the state of its file.

    Attributes:
        image: Name of the image in the label table.
        path: Absolute path of the file; "" if there is none.
        file: The path relative to the images folder, or absolute outside of it.
        stamp: See `file_stamp`; None if there is no file.
    """

    image: str
    path: str
    file: str
    stamp: tuple[int, int, int] | None


def file_stamp(path: str) -> tuple[int, int, int]:
    """Size in bytes of a file, and when its content and its name or rights changed, in ns.

    Raises:
        OSError: The file does not exist or cannot be accessed.
    """
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def stat_files(
    folder: Path, images: Iterable[str], files: Iterable[str]
) -> tuple[list[Source], dict[str, str]]:
    """Read the current state of image files.

    Args:
        folder: The images folder.
        images: Names of the images.
        files: Absolute path of each image's file; "" if it has none.

    Returns:
        One source per image; and `Source.file` -> reason, for files that cannot be accessed.
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


def repeated(images: Iterable[str], files: Iterable[Path | None]) -> dict[str, str]:
    """Find images whose files have the same bytes.

    Most files are distinguished by their size or their first 4 kB, so a data set is not read
    completely. Files that differ may still decode to equal pixels.

    Args:
        images: Names of the images.
        files: File of each image; None is skipped.

    Returns:
        Image -> an earlier image with an equal file.
    """
    alike: dict[object, list[tuple[str, Path]]] = {}
    for image, file in zip(images, files, strict=True):
        if file:
            alike.setdefault(file.stat().st_size, []).append((image, file))
    for read in (_beginning, _whole):
        finer: dict[object, list[tuple[str, Path]]] = {}
        for key, several in alike.items():
            for image, file in several if len(several) > 1 else ():
                finer.setdefault((key, read(file)), []).append((image, file))
        alike = finer
    return {image: first for (first, _), *others in alike.values() for image, _ in others}


def _beginning(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(_BEGINNING)


def _whole(file: Path) -> bytes:
    return hashlib.sha256(file.read_bytes()).digest()


def allowed(limit: int | str, total: int) -> int:
    """Number of images of a total that may be unusable.

    Args:
        limit: A number, such as 3, or a share as text, such as "1%".
        total: Number of all images; a share of it is rounded down.

    Raises:
        ValueError: The limit is neither a number nor a share of at most 100 %.
    """
    text = str(limit).strip()
    if re.fullmatch(r"\d+", text):
        return int(text)
    if re.fullmatch(r"\d+(\.\d+)?\s*%", text) and (share := Fraction(text[:-1])) <= 100:
        return int(share * total / 100)
    raise ValueError(f"needs a number of images, or a share such as 1%; got {limit!r}.")


def _leaves(path: str) -> bool:
    """Whether a path is absolute or has "..", so that it may lead out of its folder."""
    return os.path.isabs(path) or ".." in path.split("/")


def _stem(name: str) -> str:
    """A name without the suffix of an image file; other suffixes stay."""
    stem, dot, suffix = name.rpartition(".")
    return stem if dot and suffix.lower() in SUFFIXES else name


def _tail(components: list[str], identifying: int) -> str:
    """The part of a path that identifies an image: `patient00001/study1/view1_frontal`."""
    if identifying:
        components = [*components[-identifying:-1], _stem(components[-1])]
    return unicodedata.normalize("NFC", "/".join(components))


def _search(folder: str, tails: Set[str], identifying: int, nested: bool) -> dict[str, str]:
    """Tail -> its file below a folder, for the tails that are found; see `locate`."""
    found: dict[str, str] = {}
    lengths = {tail.count("/") + 1 for tail in tails} if nested else {0}
    for parent, names in walk(folder):
        below = [part for part in parent[len(folder) :].split(os.sep) if part]
        components = parent.split(os.sep)[-identifying:] if identifying else below
        for name in names:
            tail_of_file = _tail([*components, name], identifying)
            path = os.path.join(parent, name)
            fitting = tails & ({tail_of_file} if identifying else _ends(tail_of_file, lengths))
            for tail in (
                fitting if fitting and os.path.isfile(path) else ()
            ):  # not for dangling links
                first = found.setdefault(tail, path)
                if first != path and not os.path.samefile(first, path):
                    raise ImageError(
                        f"image {tail} needs one file below {folder}; found both {first} and "
                        f"{path}. Give the folder of one copy, or more of the path."
                    )
    return found


def _ends(path: str, lengths: Iterable[int]) -> set[str]:
    """The ends of a path with these numbers of components (0: all), with and without suffix."""
    ends = {"/".join(path.split("/")[-length:]) for length in lengths}
    stems = {_stem(end) for end in ends}
    return ends | {stem for stem in stems if stem == _stem(stem)}  # not x.png for x.png.jpg


def walk(folder: str) -> Iterator[tuple[str, list[str]]]:
    """Walk a tree of folders; links are followed, hidden folders skipped.

    Yields:
        Path of each folder, once even if links lead to it again, and the names of its files.
    """
    seen = set()
    for parent, folders, names in os.walk(folder, followlinks=True):
        status = os.stat(parent)
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()  # a link led here before, or in a circle
            continue
        seen.add((status.st_dev, status.st_ino))
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield parent, names


SIDES = range(1, 2049)
"""Allowed sides of images, pixels. Limited because a job sets it at the cost of a site's disk."""
