"""Findings that a cell lists, and the labels that lists of them are."""

import ast
import re
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from cxr_study.common.spelling import key
from cxr_study.data.labels.label_table import (
    BLANK,
    DESCRIPTORS,
    LOADED,
    NEGATIVE,
    POSITIVE,
    UNCERTAIN,
)
from cxr_study.data.labels.vocabulary import class_name
from cxr_study.data.readers.cell_values import NO_CLASS
from cxr_study.data.readers.table_layout import NORMAL

LIST, LINES, NONE = "list", "lines", "none"
"""Separators that are words: Python's ['a', 'b'], a line for each, and a cell is one finding."""

_MARKS = re.compile(r"[|;,\[\n\r]")


def parts(text: str, separator: str) -> list[str]:
    """Findings of a cell, stripped; some may be blank.

    Raises:
        ValueError: The separator is `LIST` and the cell is no Python list of texts.
    """
    cut: Mapping[str, Callable[[str], list[str]]] = {
        LIST: _python_list,
        LINES: str.splitlines,
        NONE: lambda whole: [whole],
    }
    return [part.strip() for part in cut.get(separator, lambda s: s.split(separator))(text)]


def may_be_several(text: str) -> bool:
    """Whether a cell has a mark that often separates findings."""
    return _MARKS.search(text) is not None


def meaning(separator: str | None, words: Mapping[str, str]) -> Callable[[str], frozenset[str]]:
    """Meaning of a cell of a hospital's own table that lists findings.

    Args:
        separator: What stands between findings; None: not said, so nothing may look like it.
        words: Folded word -> what it stands for: `NORMAL`, or a blank for what is left out.

    Returns:
        Meaning that gives names of classes, `NORMAL` alone, or nothing.
    """

    def names_of(text: str) -> frozenset[str]:
        if separator is None and may_be_several(text):
            raise ValueError(
                "may list several findings; say what stands between them, in the site file: "
                "findings: {separator: '|'}, or list, lines or none"
            )
        if text.startswith("[") and separator not in (LIST, NONE):
            raise ValueError("is a list as Python writes it; its separator is the word 'list'")
        said = [part for part in parts(text, separator or NONE) if part]
        said = [part for part in said if words.get(part.casefold()) != ""]
        names = {
            NORMAL
            if key(part) in NO_CLASS or words.get(part.casefold()) == NORMAL
            else class_name(part, "table")
            for part in said
        }
        if NORMAL in names and len(names) > 1:
            raise ValueError(f"'{text}' says that there is no finding, and names one.")
        if odd := [name for name in said if key(name) in (*DESCRIPTORS, *LOADED)]:
            raise ValueError(f"no class can have the name '{odd[0]}'; are these findings?")
        return frozenset(names)

    return names_of


def rows(image: np.ndarray, names: np.ndarray, label: np.ndarray) -> pd.DataFrame:
    """Findings, one per row, from what the rows of a csv list.

    Args:
        image: Number of each row's image, shape (rows,).
        names: Set of names that each row lists, shape (rows,); of those that differ in case and
            blanks alone one is kept.
        label: Of all that a row lists, shape (rows,).

    Returns:
        Columns `row` of the csv, `image`, `name` (NaN where a row lists nothing) and `label`.
    """
    spelt: dict[str, str] = {}
    spelling = {n: spelt.setdefault(key(n), n) for n in sorted(frozenset().union(*names))}
    listed = [sorted({spelling[name] for name in each}) for each in names]
    frame = pd.DataFrame(
        {"row": np.arange(len(image)), "image": image, "name": listed, "label": label}
    )
    return frame.explode("name", ignore_index=True)


def contradicted(rows: pd.DataFrame) -> np.ndarray:
    """Row that each row of the csv contradicts, of the same image; -1 for none."""
    first = rows.groupby(["image", "name"])[["label", "row"]].transform("first")
    normals = rows[(rows["name"] == NORMAL) & (rows["label"] == POSITIVE)]
    normal = rows["image"].map(normals.drop_duplicates("image").set_index("image")["row"])
    present = rows["label"].isin((POSITIVE, UNCERTAIN)) & ~rows["name"].isin([NORMAL, np.nan])
    other = first["row"].where(rows["name"].notna() & (first["label"] != rows["label"]))
    other = other.fillna(normal.where(present)).fillna(-1)
    return other.groupby(rows["row"]).max().to_numpy().astype(int)


def labels(rows: pd.DataFrame, unlisted: str | None) -> dict[str, np.ndarray]:
    """Class -> label of each image: what `rows` say, negative throughout where it is `NORMAL`.

    What is not listed is blank, or `unlisted` "negative" at an image of which anything is listed.
    """
    found = rows[rows["name"].notna()]
    normal = found["image"][(found["name"] == NORMAL) & (found["label"] == POSITIVE)]
    result = {}
    for name in sorted({*found["name"]} - {NORMAL}):
        of = np.full(rows["image"].max() + 1, BLANK)
        of[normal if unlisted is None else found["image"]] = NEGATIVE
        own = found[found["name"] == name]
        of[own["image"]] = own["label"]
        result[name] = of
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
