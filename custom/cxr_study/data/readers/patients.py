"""Ids of patients in a hospital's own table, as programs and spreadsheets write them."""

import re

import pandas as pd


def plain(patient: str) -> str:
    """An id without leading zeros and without the ".0" that a spreadsheet adds to a number."""
    number = re.fullmatch(r"([0-9]+)\.0+", patient)
    return (number[1] if number else patient).lstrip("0") or "0"


def one_spelling(table: pd.DataFrame) -> pd.DataFrame:
    """Give a patient with several spellings, such as 7, 0007 and 7.0, the shortest of them.

    Returns:
        The label table; its `attrs["notes"]` say how many patients that are, and how many ids
        differ from another in case alone, which stay as they are.
    """
    ids = pd.Series(sorted(table["patient"].unique(), key=lambda patient: (len(patient), patient)))
    plains = ids.map(plain)
    shortest = ids.groupby(plains).transform("first")
    notes = list(table.attrs.get("notes", []))
    several = ids[plains.duplicated(keep=False)]
    if len(several):
        first = ", ".join(several[plains == plain(several.iloc[0])])
        notes.append(
            f"{plains[several.index].nunique():,} patients are written in several ways ({first}), "
            "and count as one each; 'patients: exact' keeps them apart (--patients exact)"
        )
    folded = plains.drop_duplicates().str.casefold()
    alike = ids[folded.index][folded.duplicated(keep=False)]
    if len(alike):
        pair = ", ".join(alike[folded == folded[alike.index[0]]])
        notes.append(
            f"{len(alike):,} patient ids differ from another in case alone ({pair}), and count as "
            "different patients"
        )
    table = table.assign(patient=table["patient"].map(dict(zip(ids, shortest, strict=True))))
    table.attrs["notes"] = notes
    return table
