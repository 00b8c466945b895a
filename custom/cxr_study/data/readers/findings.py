"""Findings that a cell lists, and the labels that lists of them are."""

import ast
import re
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from cxr_study.common.spelling import key
from cxr_study.data.labels.label_table import BLANK, NEGATIVE, POSITIVE, UNCERTAIN

LIST, LINES, NONE = "list", "lines", "none"
"""Separators that are words: Python's ['a', 'b'], a line for each, and a cell is one finding."""

_MARKS = re.compile(r"[|;,\[\n\r]")


def parts(text: str, separator: str) -> list[str]:
    """Findings of a cell, stripped; some may be blank.

    Raises:
        ValueError: The separator is `LIST` and the cell is no Python list of texts.
    """
    if separator == LIST:
        return [part.strip() for part in _python_list(text)]
    if separator == NONE:
        return [text]
    return [
        part.strip()
        for part in (text.splitlines() if separator == LINES else text.split(separator))
    ]


def may_be_several(text: str) -> bool:
    """Whether a cell has a mark that often separates findings."""
    return _MARKS.search(text) is not None


def spellings(names: Iterable[str]) -> dict[str, str]:
    """Every name -> the spelling, one for all that differ in case and blanks alone."""
    spelt: dict[str, str] = {}
    return {name: spelt.setdefault(key(name), name) for name in sorted(names)}


def label_matrix(
    rows: pd.DataFrame, names: Sequence[str], normal: str, *, unlisted: float
) -> np.ndarray:
    """Labels of images from their findings.

    Args:
        rows: One per finding: `image` (number), `name` (NaN where a cell lists none) and `label`.
        names: The classes.
        normal: Name which says, where it is positive, that an image has no finding.
        unlisted: Label of what is not listed, at an image of which anything is.

    Returns:
        Shape (images, classes); blank throughout where nothing is listed.
    """
    labels = np.full((rows["image"].max() + 1, len(names)), BLANK)
    labels[rows["image"][rows["name"].notna()]] = unlisted
    labels[rows["image"][(rows["name"] == normal) & (rows["label"] == POSITIVE)]] = NEGATIVE
    found = rows[rows["name"].isin(names)]
    labels[found["image"], pd.Index(names).get_indexer(found["name"])] = found["label"]
    return labels


def contradicting(rows: pd.DataFrame, normal: str) -> pd.Series:
    """Which findings, see `label_matrix`, contradict another of the same image."""
    first = rows.groupby(["image", "name"])["label"].transform("first")
    said = rows["label"].isin((POSITIVE, UNCERTAIN)) & rows["name"].notna()
    is_normal = (rows["name"] == normal) & (rows["label"] == POSITIVE)
    at_normal = rows["image"].isin(rows["image"][is_normal]) & (rows["name"] != normal)
    return (rows["name"].notna() & (first != rows["label"])) | (said & at_normal)


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
