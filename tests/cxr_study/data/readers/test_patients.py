"""One patient in several spellings."""

import pandas as pd
import pytest

from cxr_study.data.readers.patients import one_spelling, plain


@pytest.mark.parametrize(
    ("patient", "short"),
    [
        *(("7", "7"), ("0007", "7"), ("7.0", "7"), ("007.00", "7"), ("000", "0"), ("0.0", "0")),
        *(("P07", "P07"), ("00P7", "P7"), ("7.5", "7.5"), ("1.2.0", "1.2.0"), ("70", "70")),
    ],
)
def test_leading_zeros_and_a_spreadsheets_end_are_no_part_of_an_id(patient, short):
    assert plain(patient) == short


def test_spellings_become_the_shortest_in_any_order_and_other_ids_stay():
    table = pd.DataFrame({"patient": ["0007", "009", "P1", "p1", "7.0", "7"]})
    table.attrs["notes"] = ["before"]
    one = one_spelling(table)
    assert one["patient"].tolist() == ["7", "009", "P1", "p1", "7", "7"]
    assert one_spelling(table[::-1])["patient"].tolist()[::-1] == one["patient"].tolist()
    _, several, case = one.attrs["notes"]
    assert several.startswith("1 patients are written in several ways (7, 7.0, 0007), and count")
    assert case.startswith("2 patient ids differ from another in case alone (P1, p1)")
    assert one_spelling(one[1:]).attrs["notes"][-1] == case
