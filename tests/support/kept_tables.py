"""Tables of the documents, computed from the kept csv of studies.

Usage: python tests/support/kept_tables.py

In a document such a table follows a comment of its name, `<!-- table: NAME -->`; called as a
program, this rewrites all of them.
"""

import re

import pandas as pd

import tables_of_drawings
import tables_of_real_images
from table_text import REPORTS, ROOT, table

_MARKED = re.compile(r"(<!-- table: ([\w -]+) -->\n)((?:\|.*\n)+)")


def many_sites():
    read = pd.read_csv(REPORTS / "scale/many_sites.csv").sort_values("sites")
    forms = {"sites": "d", "seconds": ".1f", "cpu_seconds": ".1f", "memory": ",.0f", "wrong": "d"}
    rows = [
        [format(getattr(line, name), form) for name, form in forms.items()]
        for line in read.itertuples()
    ]
    head = ["sites", "seconds a round", "CPU s of the server's job a round", "memory, MB"]
    return table([*head, "wrong results"], rows)


TABLES = {
    **tables_of_real_images.TABLES, **tables_of_drawings.TABLES, "many sites": many_sites,
}  # fmt: skip


def documents():
    """Documents with such tables -> their text."""
    texts = {path: path.read_text(encoding="utf-8") for path in ROOT.rglob("*.md")
             if ".venv" not in path.parts}  # fmt: skip
    return {path: text for path, text in texts.items() if _MARKED.search(text)}


def made_anew(text):
    """A document with its tables as the csv have them."""
    return _MARKED.sub(lambda found: found[1] + TABLES[found[2]](), text)


def names(text):
    return [found[2] for found in _MARKED.finditer(text)]


if __name__ == "__main__":
    for document, text in documents().items():
        document.write_text(made_anew(text), encoding="utf-8")
        print(document.relative_to(ROOT), *names(text))
