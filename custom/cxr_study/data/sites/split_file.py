"""The split file: an assignment of patients, with a record of how and from what it was made.

A csv that people can read, compare and write by hand, after a header in comments:

    # scheme: 70/10/20 of the patients, stratified by any positive label
    # seed: 0
    # input: sha256:5f0c...  over image, patient and any positive label of every row
    # counts:
    #   train: {patients: 21564, images: 78263, positive patients: 11721}
    #   ...
    patient,split
    1,train

A file for several sites has the column `site` between the two. The header, if there is one, is
compared with the labels at every use.
"""

import glob
import hashlib
import math
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from cxr_study.common.errors import InputError
from cxr_study.common.yaml_files import parse_yaml
from cxr_study.data.labels.csv_columns import CsvFile, open_csv, read_columns
from cxr_study.data.readers.cell_values import choice_parser, non_blank
from cxr_study.data.sites.patient_split import SPLITS, UNUSED, check, positive_patients

__all__ = ["write_split"]

_SPLIT = choice_parser(
    f"{', '.join(SPLITS)} or {UNUSED}", {name: name for name in (*SPLITS, UNUSED)}
)


@dataclass(frozen=True, eq=False)
class SplitFile:
    """Content of a split file.

    Attributes:
        path: The file.
        assignment: Of patients, see `patient_split`.
        header: Keys scheme, seed, input and counts; empty if the file was written by hand.
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
    """Write a split file.

    An existing file with other content is renamed, see `replaced_files`.

    Args:
        assignment: Of patients, see `patient_split`.
        table: The label table it was made from, as read.
        csv: The file; its folder must exist.
        scheme: How the split was made, for people.
        seed: Random seed; None for an official split.
        more: Further keys of the header, for people.

    Raises:
        InputError: The assignment lacks a patient of the table or repeats one.
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
    if csv.is_file() and csv.read_bytes() != text.encode():
        free = (
            csv.with_name(f"{csv.stem}.earlier-{n}.csv")
            for n in count(len(replaced_files(csv)) + 1)
        )
        csv.rename(next(file for file in free if not file.exists()))
    csv.write_text(text, encoding="utf-8")


def replaced_files(csv: Path) -> list[Path]:
    """Split files that were replaced by `csv`: <name>.earlier-1.csv and so on, oldest first."""
    return sorted(
        csv.parent.glob(f"{glob.escape(csv.stem)}.earlier-*.csv"),
        key=lambda file: (len(file.name), file.name),
    )


def read_split(csv: Path) -> SplitFile:
    """Read a split file.

    Raises:
        InputError: A column is missing, a split is not one of `SPLITS` or unused, or the header is
            not YAML; names file and line.
    """
    file = open_csv(csv, comments=True)
    site = {"site": non_blank} if "site" in file.header else {}
    parsers = {"patient": non_blank, **site, "split": _SPLIT}
    columns = read_columns(file, list(parsers))
    return SplitFile(csv, pd.DataFrame(columns.decode_all(parsers)), _header(file))


def apply_split(split_file: SplitFile, table: pd.DataFrame, site: str) -> pd.DataFrame:
    """Check a split file against the labels, and select the rows of a site.

    Args:
        split_file: The split.
        table: Label table as read, with the views that the site uses.
        site: Name of the site.

    Returns:
        The site's rows (all, if the file has no column `site`), with the column `split` after the
        others and a RangeIndex.

    Raises:
        InputError: A patient has no split or two, the file was made from other labels, its counts
            do not fit its lines, or it has no patient of the site.
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
    """Hash of a label table, independent of the order of its rows.

    It covers image, patient and whether the patient has any positive label, of each row.

    Returns:
        "sha256:" and 64 hexadecimal digits.
    """
    positive = table["patient"].map(positive_patients(table)).map({True: "1", False: "0"})
    lines = sorted(table["image"] + "\t" + table["patient"] + "\t" + positive)
    return "sha256:" + hashlib.sha256("\n".join(lines).encode()).hexdigest()


def counts(assignment: pd.DataFrame, table: pd.DataFrame) -> dict[str, Any]:
    """Count patients, images and positive patients of each split.

    Args:
        assignment: Of patients, see `patient_split`.
        table: The label table it was made from, as read.

    Returns:
        Split -> {"patients", "images", "positive patients"} -> number; with several sites, site ->
        such a mapping.
    """
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
    """Refuse a header that does not fit the labels or the lines of its file."""
    header = split_file.header
    if "input" not in header:
        return  # written by hand
    if header["input"] != fingerprint(table):
        raise InputError(
            "this split was made from other labels: an image, a patient or a finding was added, "
            "removed or changed, or other views are used. Create the split again (surgagg data "
            "split), or, to keep it unchanged, remove the lines that begin with '#'."
        )
    if header.get("counts") != counts(split_file.assignment, table):
        raise InputError(
            "the counts in the header do not fit the lines: the file was edited. Create the split "
            "again (surgagg data split), or remove the lines that begin with '#'."
        )


def _header(csv: CsvFile) -> dict[str, Any]:
    """Read the header, which is in comments; empty if there is none."""
    lines = csv.before.decode().splitlines(keepends=True)
    comment = [line for line in lines if line.startswith("#")]
    try:
        header = parse_yaml("".join(line[1:].removeprefix(" ") for line in comment))
    except yaml.YAMLError as error:
        raise InputError(f"{csv.path}: the header cannot be read as YAML: {error}") from error
    return header if isinstance(header, dict) else {}
