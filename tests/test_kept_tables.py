"""Tables of the documents are what the kept csv of studies say."""

import json

import pytest

import kept_tables
from table_text import REPORTS

DOCUMENTS = kept_tables.documents()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_tables_of_documents_equal_the_kept_csv(document):
    text = DOCUMENTS[document]
    assert kept_tables.made_anew(text) == text, "python tests/support/kept_tables.py"
    first = kept_tables.names(text)[0]
    head, rest = text.split(f"<!-- table: {first} -->", 1)
    changed = head + f"<!-- table: {first} -->" + rest.replace("0.", "1.", 1)
    assert kept_tables.made_anew(changed) == text


def test_every_table_is_in_a_document():
    found = [name for text in DOCUMENTS.values() for name in kept_tables.names(text)]
    assert {*found} == {*kept_tables.TABLES}


@pytest.mark.parametrize("folder", sorted({path.parent for path in REPORTS.glob("*/*.csv")}))
def test_it_is_kept_how_a_csv_was_made(folder):
    facts = json.loads((folder / "provenance.json").read_text(encoding="utf-8"))
    wanted = {"Command", "Data", "Runs", "Code", "Sources", "Machine", "Made with"}
    assert wanted <= facts.keys() and all(facts.values())
