"""Image files to grey arrays: found, decoded once in parallel, kept in a cache."""

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image

from cxr_study import cache

_SUFFIXES = (".png", ".jpg", ".jpeg")
_RECIPE = b"1"  # part of the cache key; raise it when `decode` gives other pixels than before


class ImageError(ValueError):
    """Image files cannot be told apart, read or decoded."""


def index_by_name(folder: Path) -> dict[str, Path]:
    """List all images at any depth of a folder, e.g. NIH's `images_001/images/*.png`.

    Args:
        folder: Where to look; links are followed.

    Returns:
        File name to path.

    Raises:
        ImageError: A name stands in two places.
    """
    index: dict[str, Path] = {}
    for parent, _, names in os.walk(folder, followlinks=True):
        for name in names:
            if not name.lower().endswith(_SUFFIXES):
                continue
            path = Path(parent, name)
            if index.setdefault(name, path) != path:
                raise ImageError(
                    f"image names must be unique below {folder}; {name} is both {index[name]} and "
                    f"{path}. Point at the folder of one copy."
                )
    return index


def locate(folder: Path, images: Iterable[str]) -> list[Path | None]:
    """Find the files of images.

    An image that is a bare file name and does not lie in the folder itself is looked for at any
    depth.

    Args:
        folder: The images folder.
        images: Paths relative to it.

    Returns:
        One path per image; None where there is no file.

    Raises:
        ImageError: A bare name had to be looked for, and names are not unique.
    """
    images = list(images)
    files = [path if (path := Path(folder, image)).is_file() else None for image in images]
    bare = [i for i, image in enumerate(images) if files[i] is None and "/" not in image]
    if bare:
        index = index_by_name(folder)
        for i in bare:
            files[i] = index.get(images[i])
    return files


def decode(path: Path, size: int) -> np.ndarray:
    """Decode one image to a grey square.

    Colour is turned to grey by luma (ITU-R 601), transparency is ignored, 16-bit grey is scaled by
    its full range (65535 becomes 255), and an image of another size is resized to the square
    without regard to its aspect ratio, with antialiasing.

    Args:
        path: PNG (8- or 16-bit, grey, colour or palette, with or without transparency) or JPEG.
        size: Side of the square, pixels.

    Returns:
        uint8 array of shape (size, size).

    Raises:
        ImageError: The file cannot be read or decoded.
    """
    try:
        with Image.open(path) as image:
            image.draft("L", (2 * size, 2 * size))  # lets a large JPEG decode at reduced scale
            if image.mode.startswith("I"):
                scaled = np.rint(np.asarray(image, dtype=np.float64) / 257)
                grey = Image.fromarray(scaled.clip(0, 255).astype(np.uint8))
            else:
                grey = image.convert("L")
            if grey.size != (size, size):
                grey = grey.resize((size, size), Image.Resampling.BILINEAR)
            return np.asarray(grey)
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise ImageError(f"{path} cannot be decoded: {error}") from error


def load_images(
    paths: Sequence[str | Path],
    size: int,
    cache_dir: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> np.ndarray:
    """Decode images in parallel, or open them from the cache.

    The cache knows an image by its absolute path, length and time of change.

    Args:
        paths: Image files.
        size: Side of the square they become, pixels.
        cache_dir: Folder of the cache; default `cxr_study.cache.cache_dir()`.
        progress: Called as progress(done, total) after each image; not called where the cache has
            them.

    Returns:
        uint8 array of shape (len(paths), size, size), memory-mapped and read-only.

    Raises:
        ImageError: Files are missing or cannot be decoded; counts them and names the first five.
    """
    files = [Path(path).absolute() for path in paths]
    if not files:
        return np.empty((0, size, size), np.uint8)
    folder = cache.cache_dir() if cache_dir is None else Path(cache_dir)
    cached = folder / f"images-{_fingerprint(files, size)}.npy"
    if not cached.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as unfinished:
            new = Path(unfinished, "images.npy")
            _decode_all(files, size, new, progress)
            new.replace(cached)
    return np.load(cached, mmap_mode="r")


def _fingerprint(paths: Sequence[Path], size: int) -> str:
    digest = hashlib.sha256(_RECIPE + f"/{size}".encode())
    for path in paths:
        try:
            stat = path.stat()
        except OSError:
            continue  # decoding will report it
        digest.update(f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:32]


def _decode_all(
    paths: Sequence[Path], size: int, target: Path, progress: Callable[[int, int], None] | None
) -> None:
    pixels = np.lib.format.open_memmap(
        target, mode="w+", dtype=np.uint8, shape=(len(paths), size, size)
    )

    def decode_into(row: int) -> ImageError | None:
        try:
            pixels[row] = decode(paths[row], size)
        except ImageError as error:
            return error
        return None

    errors = []
    with ThreadPoolExecutor() as pool:
        for row, error in enumerate(pool.map(decode_into, range(len(paths)))):
            if error is not None:
                errors.append(error)
            if progress is not None:
                progress(row + 1, len(paths))
    if errors:
        raise ImageError(
            f"{len(errors)} of {len(paths)} images cannot be read, first:\n"
            + "\n".join(str(error) for error in errors[:5])
            + "\nReplace these files, or take their rows out of the labels."
        )
    pixels.flush()
