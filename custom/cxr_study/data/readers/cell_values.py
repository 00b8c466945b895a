"""Parsers of cells and columns that several data sets share.

A parser takes the stripped text of a cell and returns its value. It raises a ValueError that states
what the cell needs; `CsvColumns.decode` adds file, line and column.
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
from cxr_study.data.labels.csv_columns import full_match
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
"""Highest age in years; a higher one is taken as a mistake, and thus unknown."""
_UNITS_PER_YEAR = {"": 1.0, "Y": 1.0, "M": 12.0, "W": 52.0, "D": 365.0}

NO_CLASS = {"no finding", "normal"}
"""Folded names that mean the absence of findings, and are not classes."""
_CERTAIN = {"1": POSITIVE, "1.0": POSITIVE, "0": NEGATIVE, "0.0": NEGATIVE}
_LABEL = _CERTAIN | {"-1": UNCERTAIN, "-1.0": UNCERTAIN, "": BLANK}


def choice_parser(what: str, values: Mapping[str, Value]) -> Callable[[str], Value]:
    """Create a parser of cells that contain one of a few texts.

    Args:
        what: The texts, for the error: "1 or 0".
        values: Text -> its value.

    Example:
        >>> choice_parser("F or M", {"F": 1, "M": 2})("M")
        2
    """

    def parse(text: str) -> Value:
        if text not in values:
            raise ValueError(f"needs {what}; got '{text}'.")
        return values[text]

    return parse


label = choice_parser("1, 0, -1 or a blank", _LABEL)
"""Parser of a label: POSITIVE, NEGATIVE, UNCERTAIN or BLANK of `label_table`."""


PROBABILITY = re.compile(r"0*[.,][0-9]+|1[.,]0+|[0-9]([.,][0-9]+)?e-[0-9]+", re.IGNORECASE)
"""A number from 0 to 1 that is not written as an integer, with a point or a comma."""


def label_parser(threshold: float | None) -> Callable[[str], float]:
    """Create a parser of labels that may be probabilities.

    Args:
        threshold: The smallest probability that counts as positive; smaller ones are negative.
            None: not given, so a probability is an error.
    """

    def parse(text: str) -> float:
        if text in _LABEL or not PROBABILITY.fullmatch(text):
            return label(text)
        if threshold is None:
            raise ValueError(
                "numbers between 0 and 1 need the smallest one that counts as positive: "
                "--threshold 0.5 (site file: threshold: 0.5)."
            )
        return POSITIVE if float(text.replace(",", ".")) >= threshold else NEGATIVE

    return parse


certain_label = choice_parser("1 or 0", _CERTAIN)
"""Parser of a label that is POSITIVE or NEGATIVE."""


def non_blank(text: str) -> str:
    """Parser of any text that is not blank."""
    if not text:
        raise ValueError("the cell is blank; every row needs a value here.")
    return text


def number(text: str) -> str:
    """Parser of a number of a patient, study or folder: text of digits only."""
    need = "a number, digits only (did a spreadsheet change the file?)"
    return full_match("[0-9]+", text, need)[0]


def age(text: str) -> float:
    """Parser of an age in years, which may have a DICOM unit: 58, 58.5, 058Y, 011M.

    Returns:
        Years; NaN for a blank cell and for an age above `OLDEST`.
    """
    if not text:
        return np.nan
    need = "a number of years, e.g. 58 or 058Y"
    amount = full_match(r"([0-9]+(?:\.[0-9]*)?)\s*([YMWD]?)", text, need)
    years = float(amount[1]) / _UNITS_PER_YEAR[amount[2]]
    return years if years <= OLDEST else np.nan


def sex(text: str) -> str:
    """Parser of a sex: F or M; "" for everything else."""
    return text if text in ("F", "M") else ""


def apply_no_finding(table: pd.DataFrame) -> pd.DataFrame:
    """Remove the column "No Finding" (or "Normal"); the blanks of its positive rows are negative.

    This is the meaning in CheXpert's labeler (Irvin et al., AAAI 2019). Support Devices do not
    count as a finding. A row with No Finding and a positive or uncertain finding stays unchanged.

    Args:
        table: Label table as read; changed in place.

    Returns:
        The same table; its notes have the number of both kinds of rows.
    """
    for normal in [name for name in classes(table) if key(name) in NO_CLASS]:
        no_finding = table.pop(normal) == POSITIVE
        names = [name for name in classes(table) if name != "Support Devices"]
        found = table[names].isin((POSITIVE, UNCERTAIN)).any(axis=1)
        blank = (table[names] == BLANK).mul(no_finding & ~found, axis=0)
        table[names] = table[names].mask(blank, NEGATIVE)
        for number, what in (
            (blank.any(axis=1).sum(), "their blank labels are negative (Support Devices aside)"),
            ((no_finding & found).sum(), "and a finding; their blanks stay blank"),
        ):
            if number:
                table.attrs["notes"].append(f"{number:,} images have {normal}, {what}")
    return table


def class_columns(
    csv: Path, header: Sequence[str], descriptors: Collection[str], dataset: str
) -> dict[str, str]:
    """Find the class columns of a csv: all but descriptors, "No Finding" and "Normal".

    Args:
        csv: The file, for the errors.
        header: Names of all columns.
        descriptors: Names of columns that are not classes.
        dataset: Data set whose own names are translated, see `vocabulary.class_name`.

    Returns:
        Name of the column -> name of its class, in the order of the header.

    Raises:
        InputError: A column has no name, differs from a descriptor only in case, or two columns
            are the same class.
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
                f"{csv}, line 1, column '{column}': a class cannot have the name of a descriptor; "
                f"write '{reserved[key(column)]}', or another name if it is a class."
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
    """Refuse a csv that has class columns which the reader of its data set does not read.

    Such a file has other labels than the official ones, for example later ones by radiologists.

    Args:
        csv: The file, for the error.
        header: Names of all columns.
        read: Names of the columns that the reader reads.
        dataset: Name of the data set, for the error.

    Raises:
        InputError: A column that is not read has the name of a class, or a similar one.
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
            f"dataset '{dataset}' would not read them. Create a site file for your own table "
            "(surgagg data site table), or remove these columns."
        )


LIST = "list"
"""Name of the separator for findings in a Python list: ['a', 'b']."""

_MARKS = re.compile(r"[|;,\n\r]| \+ ")  # may separate findings


def split_findings(text: str, separator: str) -> list[str]:
    """Split a cell into findings, which are stripped and may be blank.

    Args:
        text: Of the cell.
        separator: Text between findings, or `LIST`.

    Raises:
        ValueError: The separator is `LIST` and the cell is not a Python list of texts.
    """
    cut = _python_list(text) if separator == LIST else text.split(separator)
    return [part.strip() for part in cut]


def findings_parser(
    separator: str | None, words: Mapping[str, str]
) -> Callable[[str], frozenset[str]]:
    """Create a parser of cells that list findings, in a hospital's own table.

    Args:
        separator: Text between findings, or `LIST`. None: not given, so a cell that looks like a
            list is an error.
        words: Folded word -> its meaning: another name, `NORMAL`, or "" to leave it out.

    Returns:
        A parser that returns names of classes, `NORMAL` only, or an empty set.
    """

    def names_of(text: str) -> frozenset[str]:
        mark = None if separator else _MARKS.search(text)
        bracket = text.startswith("[") and separator != LIST
        if bracket or mark:
            between = LIST if bracket or not mark else mark[0].strip() or r"\n"
            raise ValueError(
                f"'{text}' may list several findings; give their separator: --separator "
                f"'{between}' (site file: findings: {{separator: '{between}'}}), or a text that no "
                "cell has."
            )
        found = split_findings(text, separator or "\n")
        if odd := [part for part in found if words.get(part.casefold()) in LABELS]:
            raise ValueError(
                f"'{odd[0]}' is listed, and listed findings are present; it cannot mean "
                f"{words[odd[0].casefold()]}. It can mean 'No Finding', or nothing, to leave it "
                "out; 'merges' makes it another finding."
            )
        meant = [words.get(part.casefold(), part) for part in found]
        names = {
            NORMAL if key(part) in NO_CLASS else class_name(part, "table")
            for part in filter(None, meant)
        }
        if NORMAL in names and len(names) > 1:
            raise ValueError(f"'{text}' has both no finding and a finding.")
        if odd := [name for name in names if key(name) in (*DESCRIPTORS, *LOADED)]:
            raise ValueError(f"a class cannot have the name '{odd[0]}'; are these findings?")
        return frozenset(names)

    return names_of


def labels_from_lists(listed: np.ndarray, label: np.ndarray) -> dict[str, np.ndarray]:
    """Convert lists of findings into a label for each class and row.

    Args:
        listed: Set of names that each row lists, object (rows,). Of names that differ only in case
            or blanks, one is kept.
        label: Label that applies to all names of a row, float (rows,).

    Returns:
        Class, sorted by name -> labels, float (rows,): the row's label if it lists the class,
        NEGATIVE if it lists `NORMAL` as positive, else NaN.
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
    """Parse a Python list of texts; a blank is an empty list."""
    if not text:
        return []
    # Python would read ['a' 'b'] as ['ab'].
    readable = "\\" not in text and not re.search(r"""['"]\s+['"]""", text)
    try:
        tokens = ast.literal_eval(text) if readable else None
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        tokens = None
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise ValueError(f"needs a list like ['cardiomegaly', 'pleural effusion']; got {text}.")
    return tokens
