from pathlib import Path

import pytest

from cxr_study.studies.plan import shipped_files


def test_a_shipped_file_is_found_by_its_name():
    assert "clients" in shipped_files.names("study_files")
    assert shipped_files.find("clients", "study_files", "study", ValueError).is_file()


def test_what_ends_as_a_path_is_one_even_where_a_shipped_file_has_its_name():
    found = shipped_files.find("clients.yaml", "study_files", "study", ValueError)
    assert found == Path("clients.yaml")


def test_any_other_name_is_refused_with_what_it_is_for_and_the_nearest():
    told = "study 'client': needs the path of a .yaml file, or a name; .* nearest known: clients"
    with pytest.raises(KeyError, match=told):
        shipped_files.find("client", "study_files", "study", KeyError)
