import pytest
from hypothesis import given
from hypothesis import strategies as st

from surgical_aggregation.server.access.refusal import Refusal
from surgical_aggregation.wire.one_line import LONGEST, one_line


@pytest.mark.parametrize("text", ["", "Nodule/Mass, 0.5", "Ödem", "肺水腫"])
def test_what_can_be_printed_stays(text):
    assert one_line(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x1b[2J", r"\x1b[2J"),
        ("a\u2028b\u202ec\x85", r"a\u2028b\u202ec\x85"),
        ("\ud800", r"\ud800"),
    ],
)
def test_all_else_is_escaped(text, shown):
    assert one_line(text) == shown


@given(st.text(st.characters(codec=None)))
def test_nothing_is_left_that_cannot_be_printed(text):
    assert one_line(text).isprintable()


def test_a_long_text_is_cut():
    assert one_line("a" * 5000) == "a" * LONGEST + " ..."


def test_so_is_the_reason_of_a_refusal_wherever_it_goes():
    assert Refusal("north", "train", 3, "a\nb").reason == r"a\nb"
