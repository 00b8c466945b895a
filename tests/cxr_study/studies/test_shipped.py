from pathlib import Path

import pytest

from cxr_study.studies import shipped


def test_a_shipped_file_is_found_by_its_name():
    assert "clients" in shipped.names("published")
    assert shipped.find("clients", "published", ValueError).is_file()


def test_what_ends_as_a_path_is_one_even_where_a_shipped_file_has_its_name():
    assert shipped.find("clients.yaml", "published", ValueError) == Path("clients.yaml")


def test_any_other_name_is_refused_with_the_nearest():
    with pytest.raises(KeyError, match="'client' is none, nearest known: clients"):
        shipped.find("client", "published", KeyError)
