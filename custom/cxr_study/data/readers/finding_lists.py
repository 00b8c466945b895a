"""Findings that a cell lists, and the labels that lists of them are."""

import ast
import re
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from cxr_study.common.spelling import key
from cxr_study.data.labels.label_table import BLANK, DESCRIPTORS, LOADED, NEGATIVE, POSITIVE
from cxr_study.data.labels.vocabulary import class_name
from cxr_study.data.readers.cell_values import NO_CLASS
from cxr_study.data.readers.table_layout import LABELS, NORMAL

LIST = "list"
"""The separator of findings in a list as Python writes it: ['a', 'b']."""

_MARKS = re.compile(r"[|;,\n\r]| \+ ")  # may separate findings


def parts(text: str, separator: str) -> list[str]:
    """Findings of a cell, stripped; some may be blank.

    Raises:
        ValueError: The separator is `LIST` and the cell is no Python list of texts.
    """
    cut = _python_list(text) if separator == LIST else text.split(separator)
    return [part.strip() for part in cut]


def meaning(separator: str | None, words: Mapping[str, str]) -> Callable[[str], frozenset[str]]:
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
        listed = parts(text, separator or "\n")
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


def labels(listed: np.ndarray, label: np.ndarray) -> dict[str, np.ndarray]:
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
