"""Images that a hospital's own csv names by a number of their DICOM headers, such as an accession.

The headers are read once, into an index beside the site file; it may be written by hand, too:

    AccessionNumber,image,view
    0012345,export/1.dcm,PA
    0012345,export/2.dcm,lateral
"""

from pathlib import Path

import numpy as np
import pandas as pd

from cxr_study.common import progress
from cxr_study.common.errors import InputError
from cxr_study.data.images.image_files import ImageError, walk
from cxr_study.data.labels.csv_columns import open_csv, read_columns
from cxr_study.data.readers.mimic import view
from cxr_study.data.readers.table import PLAIN, meaning


def write_index(folder: Path, keyword: str, csv: Path) -> str:
    """Read the headers of all DICOM files below a folder and write the index.

    Args:
        folder: The images folder.
        keyword: Of the number, as DICOM spells it (PS3.6).
        csv: Receives a row per image, by path.

    Returns:
        How many images the index has, and what was passed over and why, for people.

    Raises:
        ImageError: There is no such keyword, or no image with such a number.
    """
    from pydicom.datadict import keyword_dict  # takes its time, and `join` needs none

    from cxr_study.data.images.dicom import DicomError, read_number

    if keyword not in keyword_dict:
        raise ImageError(f"'{keyword}' is no DICOM keyword such as AccessionNumber.")
    files = sorted(Path(parent, name) for parent, names in walk(str(folder)) for name in names)
    rows: list[tuple[str, str, str]] = []
    others: dict[str, list[str]] = {}
    with progress.bar("reading headers") as report:
        for done, path in enumerate(files, 1):
            file = path.relative_to(folder).as_posix()
            try:
                number, position = read_number(path, keyword)
                rows.append((number, file, view(position)))
            except DicomError as error:
                others.setdefault(str(error), []).append(file)
            report(done, len(files))
    passed_over = [f"{len(of):,} files ({why}), first {of[0]}" for why, of in others.items()]
    if not rows:
        has = "; ".join(passed_over) or "no file"
        raise ImageError(f"{folder} needs images with a DICOM {keyword}, see --images; has {has}.")
    csv.parent.mkdir(parents=True, exist_ok=True)
    index = pd.DataFrame(rows, columns=[keyword, "image", "view"])
    index.to_csv(csv, index=False, lineterminator="\n", errors="backslashreplace")
    found = f"{len(rows):,} with a DICOM {keyword} below {folder}: {csv}"
    return "; not used: ".join([found, *passed_over])


def join(table: pd.DataFrame, csv: Path) -> pd.DataFrame:
    """Give each image the row of its number.

    Args:
        table: Label table whose `image` is the number, each once.
        csv: The index: the number first, in a column of any name.

    Returns:
        A row per image, in the order of the table; a view that the table does not know is the
        index's. Its notes count the numbers and the images that are left out.

    Raises:
        InputError: The index does not hold what it should, or has none of the numbers.
    """
    file = open_csv(csv)
    keyword = file.header[0]
    index = read_columns(file, [keyword, "image", "view"])
    index.require_unique("image")
    views = index.decode("view", meaning(PLAIN, "view", "view"))
    numbers, images = pd.Index(table["image"]), index["image"].to_numpy()
    row = numbers.get_indexer(index[keyword])
    chosen = np.argsort(row, kind="stable")[(row < 0).sum() :]
    if not len(chosen):
        raise InputError(
            f"{csv}: none of its numbers, first {keyword} '{index[keyword].iloc[0]}', is one of "
            f"the {len(numbers):,} that the labels have, first '{numbers[0]}'. Name images by "
            "another number (--images-by), or the column that has this one; leading zeros count."
        )
    joined = table.iloc[row[chosen]].reset_index(drop=True)
    own = joined["view"]
    joined["image"], joined["view"] = images[chosen], own.where(own != "", views[chosen])
    left_out = {
        f"{keyword} of the labels match no image": numbers[~numbers.isin(index[keyword])],
        f"images have no row of labels with their {keyword}": images[row < 0],
        "images have no known view": joined["image"][joined["view"] == ""].tolist(),
    }
    joined.attrs["notes"] = table.attrs["notes"] + [
        f"{len(names):,} {what}, first {names[0]}" for what, names in left_out.items() if len(names)
    ]
    return joined
