"""Image files: found below a folder, however the data set was unpacked, and their current state."""
# ruff: noqa: PTH100, PTH113, PTH116, PTH117, PTH118, PTH121, PTH206
# pathlib takes several times as long over 400,000 files.

import hashlib
import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path

SUFFIXES = ("png", "jpg", "jpeg", "tif", "tiff", "jp2", "j2k", "webp", "bmp", "dcm", "dicom")
"""Of image files, in lower case."""

_BEGINNING = 4096  # bytes, by which files of the same length mostly differ


class ImageError(ValueError):
    """Image files cannot be told apart, read, decoded or kept."""


def below(folder: Path, path: str) -> str:
    """A path with forward slashes; an absolute one that leads below a folder, relative to that."""
    path = path.replace("\\", "/")
    for root in (os.path.abspath(folder), os.path.realpath(folder)) if _leaves(path) else ():
        path = path.removeprefix(f"{Path(root).as_posix().rstrip('/')}/")
    return path


def locate(
    folder: Path, images: Iterable[str], identifying: int = 1, nested: bool = False
) -> list[Path | None]:
    """Find the files of images.

    An image lies where its path says, or else wherever below the folder a file has the same last
    `identifying` path components, suffix aside: `CheXpert-v1.0/train/patient00001/study1/view1.jpg`
    is found in the small version, `00000001_000.png` in `images_001/images/` or resized to `.jpg`.
    Where the whole path identifies it, only a suffix that is missing is supplied. Names are
    compared in Unicode's form C: macOS writes an umlaut as two characters. No path leads out of the
    folder, but links in it may.

    The tree is walked at most once. Links are followed; hidden folders, folders that may not be
    listed and other suffixes are skipped. A file that is reached in two ways is one file.

    Args:
        folder: The images folder.
        images: Paths relative to it, with forward slashes; the suffix may be missing.
        identifying: How many trailing components identify an image; 0: only the whole path does.
        nested: Whether the whole path may be the end of a longer one.

    Returns:
        One path per image; None where there is no file.

    Raises:
        ImageError: Two files could be an image that does not lie where its path says.
    """
    images = [below(folder, image) for image in images]
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
    """An image and its file.

    Attributes:
        path: Absolute path of the file, "" where there is none.
        file: The path relative to the images folder.
        stamp: Length and time of change (ns); None where there is no file.
    """

    image: str
    path: str
    file: str
    stamp: tuple[int, int] | None


def file_stamp(path: str) -> tuple[int, int]:
    """Length and time of change (ns) of a file."""
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns


def look_at(
    folder: Path, images: Iterable[str], files: Iterable[str]
) -> tuple[list[Source], dict[str, str]]:
    """Look at the current state of image files; `files` has "" for an image without one.

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


def repeated(images: Iterable[str], files: Iterable[Path | None]) -> dict[str, str]:
    """Image -> an earlier one whose file has the same bytes; those without a file are left out.

    Of most files only the length is looked at, or the beginning: a data set is not read to the end.
    Other files may still decode to equal pixels.
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
    """How many images of a total may be unusable: a number such as 3, or a share such as "1%".

    Raises:
        ValueError: The limit is neither.
    """
    text = str(limit).strip()
    if re.fullmatch(r"\d+", text):
        return int(text)
    if re.fullmatch(r"\d+(\.\d+)?\s*%", text) and (share := float(text[:-1])) <= 100:
        return int(share * total / 100)
    raise ValueError(f"needs a number of images, or a share such as 1%; got {limit!r}.")


def _leaves(path: str) -> bool:
    """Whether a path may lead out of the folder that it starts from."""
    return os.path.isabs(path) or ".." in path.split("/")


def _stem(name: str) -> str:
    """A name without the suffix of an image file."""
    stem, dot, suffix = name.rpartition(".")
    return stem if dot and suffix.lower() in SUFFIXES else name


def _tail(components: list[str], identifying: int) -> str:
    """What identifies an image, such as `patient00001/study1/view1_frontal`."""
    if identifying:
        components = [*components[-identifying:-1], _stem(components[-1])]
    return unicodedata.normalize("NFC", "/".join(components))


def _search(folder: str, tails: Set[str], identifying: int, nested: bool) -> dict[str, str]:
    """Files with the given tails below a folder."""
    found: dict[str, str] = {}
    lengths = {tail.count("/") + 1 for tail in tails} if nested else {0}
    for parent, names in walk(folder):
        below = [part for part in parent[len(folder) :].split(os.sep) if part]
        components = parent.split(os.sep)[-identifying:] if identifying else below
        for name in names:
            whole = _tail([*components, name], identifying)
            path = os.path.join(parent, name)
            fitting = tails & ({whole} if identifying else _ends(whole, lengths))
            for tail in fitting if fitting and os.path.isfile(path) else ():  # or a link to nowhere
                first = found.setdefault(tail, path)
                if first != path and not os.path.samefile(first, path):
                    raise ImageError(
                        f"one file needs to be {tail} below {folder}; both {first} and {path} "
                        "could be. Point at the folder of one copy, or give more of the path."
                    )
    return found


def _ends(path: str, lengths: Iterable[int]) -> set[str]:
    """The last components of a path, of some lengths (0: all), with and without the suffix."""
    ends = {"/".join(path.split("/")[-length:]) for length in lengths}
    stems = {_stem(end) for end in ends}
    return ends | {stem for stem in stems if stem == _stem(stem)}  # not x.png for x.png.jpg


def walk(folder: str) -> Iterator[tuple[str, list[str]]]:
    """List each folder of a tree once, except hidden ones, with the names of its files."""
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
"""Sides in pixels. A job names one, and the site's disk and memory pay for it."""
