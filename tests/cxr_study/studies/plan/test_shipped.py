from pathlib import Path

import pytest

from cxr_study.studies.plan import shipped


def test_a_shipped_file_is_found_by_its_name():
    assert "clients" in shipped.names("published")
    assert shipped.find("clients", "published", "study", ValueError).is_file()


def test_what_ends_as_a_path_is_one_even_where_a_shipped_file_has_its_name():
    found = shipped.find("clients.yaml", "published", "study", ValueError)
    assert found == Path("clients.yaml")


def test_any_other_name_is_refused_with_what_it_is_for_and_the_nearest():
    told = "study 'client': needs the path of a .yaml file, or a name; .* nearest known: clients"
    with pytest.raises(KeyError, match=told):
        shipped.find("client", "published", "study", KeyError)
