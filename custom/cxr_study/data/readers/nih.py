"""NIH ChestX-ray14: Data_Entry_2017.csv and Data_Entry_2017_v2020.csv.

Data set: Wang et al., CVPR 2017, https://nihcc.app.box.com/v/ChestXray-NIHCC. Columns are found by
name: the older file ends every line with a comma, some copies have `Patient Sex`, and both have a
comma in the name `OriginalImage[Width,Height]`. Patients are written 00000013 or 13; leading zeros
are removed.
"""

from pathlib import Path

import pandas as pd

from cxr_study.common.errors import InputError
from cxr_study.common.spelling import nearest
from cxr_study.data.labels.csv_columns import open_csv, read_columns
from cxr_study.data.labels.label_table import NEGATIVE, POSITIVE, assemble
from cxr_study.data.labels.vocabulary import NIH_CLASSES, class_name
from cxr_study.data.readers import cell_values

__all__ = ["read"]


def read(csv: Path) -> pd.DataFrame:
    """Read NIH's label csv, of either release.

    Returns:
        The label table as read, with all 14 classes; every label is positive or negative. Views are
        PA, AP or "frontal". Ages may have a unit (058Y, 011M); those above 120 years are unknown.

    Raises:
        InputError: See `cxr_study.data.readers`.
    """
    names = ["Image Index", "Finding Labels", "Patient ID", "Patient Age", "View Position"]
    file = open_csv(csv)
    cell_values.refuse_unread_classes(csv, file.header, names, "nih")
    columns = read_columns(file, [*names, ("Patient Gender", "Patient Sex")])
    values = columns.decode_all(
        {
            "Image Index": cell_values.non_blank,
            "Finding Labels": _labels,
            "Patient ID": lambda text: cell_values.number(text).lstrip("0") or "0",
            "View Position": lambda text: text if text in ("PA", "AP") else "frontal",
            "Patient Gender": cell_values.sex,
            "Patient Age": cell_values.age,
        }
    )
    columns.require_unique("Image Index")
    return assemble(
        dict(zip(NIH_CLASSES, values["Finding Labels"].T, strict=True)),
        image=values["Image Index"],
        patient=values["Patient ID"],
        view=values["View Position"],
        sex=values["Patient Gender"],
        age=values["Patient Age"],
    )


def official_lists(train_val: Path, test: Path) -> pd.DataFrame:
    """Read NIH's official lists, `train_val_list.txt` and `test_list.txt`, with an image per line.

    Returns:
        A row per image with the columns `image` and `part` ("train_val" or "test").

    Raises:
        InputError: A file cannot be read, is empty or has a blank line, or an image is repeated.
    """
    seen: dict[str, str] = {}  # image -> file and line
    parts = []
    for part, path in (("train_val", train_val), ("test", test)):
        try:
            names = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path} cannot be read: {error}.") from error
        if not names:
            raise InputError(f"{path} is empty; needs the name of an image in every line.")
        for line, image in enumerate(names, start=1):
            if not image:
                raise InputError(f"{path}, line {line}: the line is blank; needs an image's name.")
            if image in seen:
                raise InputError(
                    f"{path}, line {line}: '{image}' is already in {seen[image]}; an image is in "
                    "one of the two lists, once."
                )
            seen[image] = f"{path}, line {line}"
        parts.append(pd.DataFrame({"image": names, "part": part}))
    return pd.concat(parts, ignore_index=True)


def _labels(text: str) -> tuple[float, ...]:
    """Labels of the 14 classes, from a cell of `Finding Labels`."""
    found = cell_values.split_findings(text, "|")
    if found == ["No Finding"]:
        return (NEGATIVE,) * len(NIH_CLASSES)
    present = {_class(finding) for finding in found}
    return tuple(POSITIVE if name in present else NEGATIVE for name in NIH_CLASSES)


def _class(finding: str) -> str:
    name = class_name(finding, "nih")
    if name not in NIH_CLASSES:
        raise ValueError(
            f"'{finding}' is not an NIH finding; {nearest(finding, NIH_CLASSES)}. Findings are "
            "separated by '|'; an image without findings has only 'No Finding'."
        )
    return name
