import math

import pytest

from cxr_study.reports.page.numbers import count, figure, interval


@pytest.mark.parametrize(("written", "text"), [
    (figure(0.8125), "0.812"), (figure(0.05, 2, signed=True), "+0.05"),
    (figure(-0.0004, signed=True), "+0.000"), (figure(-0.0004), "0.000"),
    (figure(None), "–"),  # noqa: RUF001
    (figure(math.nan), "–"),  # noqa: RUF001
    (interval(0.8, 0.75, 0.85), "0.800 (0.750 to 0.850)"),
    (interval(0.8, 0.75, 0.85, 1), "0.8 (0.8 to 0.8)"),
    (interval(0.05, -0.02, 0.12, signed=True), "+0.050 (-0.020 to +0.120)"),
    (interval(0.8, None, None), "0.800"), (interval(0.8, math.nan, math.nan), "0.800"),
    (interval(None, None, None), "–"),  # noqa: RUF001
    (count(1234), "1,234"), (count(None), "withheld"),
])  # fmt: skip
def test_numbers_are_written_for_people(written, text):
    assert written == text
