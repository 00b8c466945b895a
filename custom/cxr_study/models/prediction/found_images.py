"""Images to predict: what a person names, be it files, folders or csv files, as image files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from cxr_study.data.images import dicom
from cxr_study.data.images.image_files import SUFFIXES, locate, walk

COLUMNS = ("image", "path", "file", "image index", "imageid", "image_id", "dicom_id", "image_path")
"""Of a csv file, in lower case: the first of them that there is names the images."""

_MOST_COMPONENTS = 3  # of a path that identify an image: patient, study, file, as in CheXpert


class FoundImage(NamedTuple):
    """An image to predict: its name in the table of predictions, and its file ("": there is none).

    Names are relative to the folder or csv file that was named; of a file that was named itself it
    is the path as given.
    """

    image: str
    path: str


def find(sources: Iterable[str | Path]) -> list[FoundImage]:
    """Find the images of files, folders and csv files.

    A folder's are all image files below it, sorted by path; DICOM files may have no suffix. A
    csv file names them in one of `COLUMNS`: by absolute paths, relative to its folder, or by the
    end of their paths wherever they lie below it.

    Raises:
        ValueError: A source does not exist, or has no image.
        ImageError: Two files could be an image that a csv file names.
    """
    found = []
    for source in map(Path, sources):
        if source.is_dir():
            images = _of_folder(source)
            needed = "an image file"
        elif not source.is_file():
            raise ValueError(
                f"an image, a folder or a csv file is needed; {source} does not exist."
            )
        elif source.suffix.lower() == ".csv":
            images = _of_csv(source)
            needed = "a row"
        else:
            images = [FoundImage(str(source), str(source))]
        if not images:
            raise ValueError(f"{source} needs {needed}; there is none.")
        found += images
    return found


def _of_folder(folder: Path) -> list[FoundImage]:
    files = sorted(
        path
        for parent, names in walk(str(folder))
        for path in (Path(parent, name) for name in names if not name.startswith("."))
        if path.suffix[1:].lower() in SUFFIXES or (not path.suffix and dicom.is_dicom_file(path))
    )
    return [FoundImage(file.relative_to(folder).as_posix(), str(file)) for file in files]


def _of_csv(csv: Path) -> list[FoundImage]:
    table = pd.read_csv(csv, dtype=str, keep_default_na=False)
    spelt = {str(name).strip().lower(): name for name in reversed(table.columns)}
    column = next((spelt[name] for name in COLUMNS if name in spelt), None)
    if column is None:
        raise ValueError(
            f"{csv} needs a column named one of {', '.join(COLUMNS)}; has "
            f"{', '.join(map(str, table.columns))}."
        )
    names = table[column].str.strip().tolist()
    if blank := [row for row, name in enumerate(names, start=2) if not name]:
        raise ValueError(f"{csv}: line {blank[0]}: column {column} needs an image; it is blank.")
    components = min((name.count("/") + 1 for name in names), default=1)
    files = locate(csv.parent, names, min(components, _MOST_COMPONENTS))
    return [
        FoundImage(name, name if Path(name).is_absolute() and not file else str(file or ""))
        for name, file in zip(names, files, strict=True)
    ]
