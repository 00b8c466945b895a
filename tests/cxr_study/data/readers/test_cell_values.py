import math
from pathlib import Path

import pytest

from cxr_study.data.readers import cell_values


@pytest.mark.parametrize(
    ("text", "years"),
    [("0", 0), ("63", 63), ("63.5", 63.5), ("120", 120), ("", math.nan), ("121", math.nan)],
)
def test_an_age_is_a_number_of_years_unknown_where_blank_or_absurd(text, years):
    assert cell_values.age(text) == pytest.approx(years, nan_ok=True)


@pytest.mark.parametrize("text", ["nan", "inf", "-1", "1e1", "٦٣", "63Y"])
def test_what_is_no_plain_number_is_no_age(text):
    with pytest.raises(ValueError, match="needs a number of years"):
        cell_values.age(text)


@pytest.mark.parametrize("text", ["10000032.0", "1e7", "-1", "", "s50414267", "٦"])
def test_a_number_of_a_patient_is_digits_as_they_stand(text):
    assert cell_values.number("007") == "007"
    with pytest.raises(ValueError, match="digits only"):
        cell_values.number(text)


def test_only_the_data_sets_own_names_become_canonical():
    header = ["id", "Effusion", "Other finding"]
    for dataset, name in (("nih", "Pleural Effusion"), ("table", "Effusion")):
        classes = cell_values.class_columns(Path("a.csv"), header, ["id"], dataset)
        assert classes == {"Effusion": name, "Other finding": "Other finding"}
