"""What the columns of a csv and their cells mean, as far as data sets agree.

A meaning takes a cell's stripped text and raises a ValueError that says what it needs;
`CsvColumns.decode` adds file, line and column.
"""

import ast
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd

from cxr_study.common.errors import InputError
from cxr_study.common.spelling import key
from cxr_study.data.labels.csv_columns import matching
from cxr_study.data.labels.label_table import (
    BLANK,
    DESCRIPTORS,
    LOADED,
    NEGATIVE,
    POSITIVE,
    UNCERTAIN,
    classes,
)
from cxr_study.data.labels.vocabulary import UNION_CLASSES, class_name, resemblance
from cxr_study.data.readers.table_layout import LABELS, NORMAL

Value = TypeVar("Value")

OLDEST = 120.0
"""Years; an age above it is a mistake, and taken as unknown."""
_UNITS_PER_YEAR = {"": 1.0, "Y": 1.0, "M": 12.0, "W": 52.0, "D": 365.0}

NO_CLASS = {"no finding", "normal"}
"""Folded names which say that there is no finding."""
_CERTAIN = {"1": POSITIVE, "1.0": POSITIVE, "0": NEGATIVE, "0.0": NEGATIVE}
_LABEL = _CERTAIN | {"-1": UNCERTAIN, "-1.0": UNCERTAIN, "": BLANK}


def one_of(what: str, values: Mapping[str, Value]) -> Callable[[str], Value]:
    """Meaning of a cell that holds one of a few texts; `what` lists them in the error."""

    def meaning(text: str) -> Value:
        if text not in values:
            raise ValueError(f"needs {what}; got '{text}'.")
        return values[text]

    return meaning


label = one_of("1, 0, -1 or a blank", _LABEL)


PROBABILITY = re.compile(r"0*[.,][0-9]+|1[.,]0+|[0-9]([.,][0-9]+)?e-[0-9]+", re.IGNORECASE)
"""A number from 0 to 1 that is no whole one, with a point or a comma."""


def label_from(threshold: float | None) -> Callable[[str], float]:
    """Meaning of a label that may be a probability, positive from a threshold on."""

    def meaning(text: str) -> float:
        if text in _LABEL or not PROBABILITY.fullmatch(text):
            return label(text)
        if threshold is None:
            raise ValueError(
                "numbers between 0 and 1 need the least that counts as positive: --threshold 0.5 "
                "(site file: threshold: 0.5)."
            )
        return POSITIVE if float(text.replace(",", ".")) >= threshold else NEGATIVE

    return meaning


certain_label = one_of("1 or 0", _CERTAIN)


def filled(text: str) -> str:
    """Any text but a blank one."""
    if not text:
        raise ValueError("the cell is blank; every row needs a value here.")
    return text


def number(text: str) -> str:
    """Number of a patient, study or folder, as text: digits only."""
    return matching("[0-9]+", text, "a number, digits only (did a spreadsheet change the file?)")[0]


def age(text: str) -> float:
    """Years of an age that may have DICOM's unit: 58, 58.5, 058Y, 011M.

    NaN for a blank and for an age above `OLDEST`.
    """
    if not text:
        return np.nan
    need = "a number of years, e.g. 58 or 058Y"
    amount = matching(r"([0-9]+(?:\.[0-9]*)?)\s*([YMWD]?)", text, need)
    years = float(amount[1]) / _UNITS_PER_YEAR[amount[2]]
    return years if years <= OLDEST else np.nan


def sex(text: str) -> str:
    """F or M; blank for everything else."""
    return text if text in ("F", "M") else ""


def spread_normal(table: pd.DataFrame) -> pd.DataFrame:
    """Take "No Finding" out of a label table and make the blanks of its rows negative.

    So CheXpert's labeler means it. Support Devices are no finding; a row that says No Finding and
    a finding, even an uncertain one, stays as it is. The notes of the table count both.
    """
    for normal in [name for name in classes(table) if key(name) in NO_CLASS]:
        said = table.pop(normal) == POSITIVE
        names = [name for name in classes(table) if name != "Support Devices"]
        found = table[names].isin((POSITIVE, UNCERTAIN)).any(axis=1)
        blank = (table[names] == BLANK).mul(said & ~found, axis=0)
        table[names] = table[names].mask(blank, NEGATIVE)
        for number, what in (
            (blank.any(axis=1).sum(), "their blank labels are negative (Support Devices aside)"),
            ((said & found).sum(), "and a finding; their blanks stay blank"),
        ):
            if number:
                table.attrs["notes"].append(f"{number:,} images say {normal}, {what}")
    return table


def class_columns(
    csv: Path, header: Sequence[str], descriptors: Collection[str], dataset: str
) -> dict[str, str]:
    """Class columns of a csv -> class names; "No Finding" and "Normal" are no class.

    Args:
        csv: For the errors.
        header: Names of all columns.
        descriptors: Names that are no classes.
        dataset: Whose names count, see `vocabulary.class_name`.

    Raises:
        InputError: A column has no name, is named like a descriptor in another case, or two are
            the same class.
    """
    reserved = {key(name): name for name in descriptors}
    column_of: dict[str, str] = {}  # folded name of the class -> column
    names: dict[str, str] = {}
    for position, column in enumerate(header, start=1):
        if column in descriptors or key(column) in NO_CLASS:
            continue
        if not column:
            raise InputError(f"{csv}, line 1: column {position} has no name; name or remove it.")
        if key(column) in reserved:
            raise InputError(
                f"{csv}, line 1, column '{column}': no class can have the name of what describes "
                f"an image; write '{reserved[key(column)]}', or another name if it is a class."
            )
        name = class_name(column, dataset)
        if key(name) in column_of:
            raise InputError(
                f"{csv}, line 1: columns '{column_of[key(name)]}' and '{column}' are both the "
                f"class '{name}'; keep one, or name the other differently."
            )
        column_of[key(name)] = column
        names[column] = name
    return names


def refuse_unread_classes(
    csv: Path, header: Sequence[str], read: Collection[str], dataset: str
) -> None:
    """Refuse a csv with columns of classes besides those that its data set's reader reads.

    Its labels are others than the official ones, such as those that radiologists gave later.

    Raises:
        InputError: A column that is not read is named like a class.
    """
    unread = [
        name
        for name in header
        if name
        and name not in read
        and key(name) not in NO_CLASS
        and any(name == other or resemblance(name, other) for other in UNION_CLASSES)
    ]
    if unread:
        raise InputError(
            f"{csv}, line 1: the columns {', '.join(map(repr, unread))} look like labels, and "
            f"dataset '{dataset}' would not read them. Write a site file for the table as it is "
            "(surgagg data site table), or remove these columns."
        )


LIST = "list"
"""The separator of findings in a list as Python writes it: ['a', 'b']."""

_MARKS = re.compile(r"[|;,\n\r]| \+ ")  # may separate findings


def split_findings(text: str, separator: str) -> list[str]:
    """Findings of a cell, stripped; some may be blank.

    Raises:
        ValueError: The separator is `LIST` and the cell is no Python list of texts.
    """
    cut = _python_list(text) if separator == LIST else text.split(separator)
    return [part.strip() for part in cut]


def findings(separator: str | None, words: Mapping[str, str]) -> Callable[[str], frozenset[str]]:
    """Meaning of a cell of a hospital's own table that lists findings.

    Args:
        separator: What stands between findings; None: not said, so nothing may look like it.
        words: Folded word -> what it stands for: `NORMAL`, or a blank for what is left out.

    Returns:
        Meaning that gives names of classes, `NORMAL` alone, or nothing.
    """

    def names_of(text: str) -> frozenset[str]:
        mark = None if separator else _MARKS.search(text)
        bracket = text.startswith("[") and separator != LIST
        if bracket or mark:
            between = LIST if bracket or not mark else mark[0].strip() or r"\n"
            raise ValueError(
                f"'{text}' may list several findings; say what stands between them: --separator "
                f"'{between}' (site file: findings: {{separator: '{between}'}}), or a text that no "
                "cell has."
            )
        listed = split_findings(text, separator or "\n")
        if odd := [part for part in listed if words.get(part.casefold()) in LABELS]:
            raise ValueError(
                f"'{odd[0]}' is listed, and what is listed is present; it cannot stand for "
                f"{words[odd[0].casefold()]}. It can for 'No Finding', or for nothing, which "
                "leaves it out; 'merges' makes it another finding."
            )
        said = [words.get(part.casefold(), part) for part in listed]
        names = {
            NORMAL if key(part) in NO_CLASS else class_name(part, "table")
            for part in filter(None, said)
        }
        if NORMAL in names and len(names) > 1:
            raise ValueError(f"'{text}' says that there is no finding, and names one.")
        if odd := [name for name in names if key(name) in (*DESCRIPTORS, *LOADED)]:
            raise ValueError(f"no class can have the name '{odd[0]}'; are these findings?")
        return frozenset(names)

    return names_of


def listed_labels(listed: np.ndarray, label: np.ndarray) -> dict[str, np.ndarray]:
    """Labels of what the rows of a csv list.

    Args:
        listed: Set of names that each row lists, shape (rows,); of those that differ in case and
            blanks alone one is kept.
        label: Of all that a row lists, shape (rows,).

    Returns:
        Class, by name -> its label in each row, NaN where the row does not say: that of the row
        where it lists the class, negative where it lists `NORMAL`.
    """
    rows = pd.Series(listed)[label != BLANK].explode().dropna()
    spelt: dict[str, str] = {}
    names = sorted(frozenset().union(*listed))
    rows = rows.map({name: spelt.setdefault(key(name), name) for name in names})
    result = {}
    for name in sorted({*spelt.values()} - {NORMAL}):
        result[name] = np.full(len(listed), np.nan)
        result[name][rows.index[(rows == NORMAL) & (label[rows.index] == POSITIVE)]] = NEGATIVE
        own = rows.index[rows == name]
        result[name][own] = label[own]
    return result


def _python_list(text: str) -> list[str]:
    if not text:
        return []
    # Python would take ['a' 'b'] for ['ab'].
    readable = "\\" not in text and not re.search(r"""['"]\s+['"]""", text)
    try:
        tokens = ast.literal_eval(text) if readable else None
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        tokens = None
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise ValueError(f"needs a list like ['cardiomegaly', 'pleural effusion']; got {text}.")
    return tokens
