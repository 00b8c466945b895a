"""Tables of the documents are what the kept csv of studies say."""

import pytest

import kept_tables

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
