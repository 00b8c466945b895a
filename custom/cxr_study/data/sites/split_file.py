"""The split file: an assignment of patients, with how it was made and from what.

A csv that people read, diff and may write by hand, behind a header in comments:

    # scheme: 70/10/20 of the patients, stratified by any positive label
    # seed: 0
    # input: sha256:5f0c...  over image, patient and any positive label of every row
    # counts:
    #   train: {patients: 21564, images: 78263, positive patients: 11721}
    #   ...
    patient,split
    1,train

A file that cuts patients into sites has the column `site` between the two. The header, where there
is one, is compared with the labels on every use.
"""

import glob
import hashlib
import math
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from cxr_study.common.errors import InputError
from cxr_study.common.yaml_files import parse_yaml
from cxr_study.data.labels.csv_columns import open_csv, read_columns
from cxr_study.data.readers.cell_values import filled, one_of
from cxr_study.data.sites.patient_split import SPLITS, UNUSED, check, positive_patients

__all__ = ["write_split"]

_SPLIT = one_of(f"{', '.join(SPLITS)} or {UNUSED}", {name: name for name in (*SPLITS, UNUSED)})


@dataclass(frozen=True, eq=False)
class SplitFile:
    """What a split file says.

    Attributes:
        assignment: Of patients, see `patient_split`.
        header: Keys scheme, seed, input and counts; empty where the file was made by hand.
    """

    path: Path
    assignment: pd.DataFrame
    header: dict[str, Any]


def write_split(
    assignment: pd.DataFrame,
    table: pd.DataFrame,
    csv: Path,
    *,
    scheme: str,
    seed: int | None,
    **more: object,
) -> None:
    """Write a split file; its folder exists already. Another one there is kept, see `earlier`.

    Args:
        assignment: Of patients, see `patient_split`.
        table: The label table it was made from, as read.
        csv: The file.
        scheme: How it was made, for people.
        seed: It was made with; None for an official split.
        more: Keys of the header for people, behind the others.
    """
    check(table, assignment)
    header = {
        "scheme": scheme,
        "seed": seed,
        "input": fingerprint(table),
        "counts": counts(assignment, table),
        **more,
    }
    text = yaml.safe_dump(header, sort_keys=False, width=math.inf, default_flow_style=None)
    comment = "".join(f"# {line}\n" for line in text.splitlines())
    text = comment + assignment.to_csv(index=False, lineterminator="\n")
    if csv.is_file() and csv.read_text(encoding="utf-8") != text:
        free = (csv.with_name(f"{csv.stem}.earlier-{n}.csv") for n in count(len(earlier(csv)) + 1))
        csv.rename(next(file for file in free if not file.exists()))
    csv.write_text(text, encoding="utf-8")


def earlier(csv: Path) -> list[Path]:
    """The split files that a split file has replaced, oldest first."""
    return sorted(
        csv.parent.glob(f"{glob.escape(csv.stem)}.earlier-*.csv"),
        key=lambda file: (len(file.name), file.name),
    )


def read_split(csv: Path) -> SplitFile:
    """Read a split file.

    Raises:
        InputError: A column is missing, or a split is none of `SPLITS` or unused; names file and
            line.
        InputError: The header is not YAML.
    """
    file = open_csv(csv, comments=True)
    site = {"site": filled} if "site" in file.header else {}
    meanings = {"patient": filled, **site, "split": _SPLIT}
    columns = read_columns(file, list(meanings))
    return SplitFile(csv, pd.DataFrame(columns.decode_all(meanings)), _header(csv))


def apply_split(split_file: SplitFile, table: pd.DataFrame, site: str) -> pd.DataFrame:
    """Check a split file against the labels as read and select a site's rows.

    Returns:
        The site's rows (all, where the file has no column `site`) with the column `split` behind
        the others, and a RangeIndex.

    Raises:
        InputError: A patient has no split or two, the labels are not those the file was made
            from, its counts do not fit its lines, or the site has no patient in it.
    """
    assignment = split_file.assignment
    try:
        check(table, assignment)
        _check_header(split_file, table)
    except InputError as error:
        raise InputError(f"{split_file.path}: {error}") from None
    if "site" in assignment:
        known = sorted(set(assignment["site"]))
        assignment = assignment[assignment["site"] == site]
        if assignment.empty:
            raise InputError(
                f"{split_file.path}: site '{site}' has no patient; its sites are "
                f"{', '.join(known)}. The name of the site file is the site's."
            )
    rows = table.assign(split=table["patient"].map(assignment.set_index("patient")["split"]))
    return rows[rows["split"].notna()].reset_index(drop=True)


def fingerprint(table: pd.DataFrame) -> str:
    """Hash of image, patient and any positive label of every row, in any order."""
    positive = table["patient"].map(positive_patients(table)).map({True: "1", False: "0"})
    lines = sorted(table["image"] + "\t" + table["patient"] + "\t" + positive)
    return "sha256:" + hashlib.sha256("\n".join(lines).encode()).hexdigest()


def counts(assignment: pd.DataFrame, table: pd.DataFrame) -> dict[str, Any]:
    """Count patients, images and positive patients per split, or per site and split."""
    positive = positive_patients(table)
    rows = assignment[assignment["patient"].isin(positive.index)]
    images = rows["patient"].map(table["patient"].value_counts())
    rows = rows.assign(patients=1, images=images, positive=rows["patient"].map(positive))
    rows = rows.rename(columns={"positive": "positive patients"})
    if "site" not in rows:
        return _counts_by_split(rows)
    return {str(site): _counts_by_split(group) for site, group in rows.groupby("site")}


def _counts_by_split(rows: pd.DataFrame) -> dict[str, dict[str, int]]:
    sums = rows.groupby("split")[["patients", "images", "positive patients"]].sum().astype(int)
    order = [name for name in (*SPLITS, UNUSED) if name in sums.index]
    return sums.loc[order].to_dict("index")


def _check_header(split_file: SplitFile, table: pd.DataFrame) -> None:
    header = split_file.header
    if "input" not in header:
        return  # made by hand
    if header["input"] != fingerprint(table):
        raise InputError(
            "the labels are not those that this split was made from: an image, a patient or a "
            "finding was added, removed or changed, or other views are used. Make the split anew "
            "(surgagg data split), or, to keep it as it is, remove the lines that begin with '#'."
        )
    if header.get("counts") != counts(split_file.assignment, table):
        raise InputError(
            "the counts in the header are not those of the lines: the file was edited. Make the "
            "split anew (surgagg data split), or remove the lines that begin with '#'."
        )


def _header(csv: Path) -> dict[str, Any]:
    """The header in comments."""
    with csv.open(encoding="utf-8-sig") as file:
        comment = list(takewhile(lambda line: line.startswith("#"), file))
    try:
        header = parse_yaml("".join(line[1:].removeprefix(" ") for line in comment))
    except yaml.YAMLError as error:
        raise InputError(f"{csv}: the header cannot be read as YAML: {error}") from error
    return header if isinstance(header, dict) else {}
