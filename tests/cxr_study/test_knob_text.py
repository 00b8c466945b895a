import pytest

from cxr_study.knob_text import read_knobs, set_knobs

TEXT = """\
format_version = 2

rounds = 12        # of this job
rate = 1e-3
name = "a # \\"b\\""  # in quotes
mixed = false

components = [
  { id = "site"
    args { rate = "{rate}" } }
]
"""


def test_knobs_are_the_primitive_settings_at_the_top_with_their_types():
    knobs = read_knobs(TEXT)
    assert knobs == {"rounds": 12, "rate": 1e-3, "name": 'a # "b"', "mixed": False}
    assert type(knobs["rounds"]) is int and type(knobs["mixed"]) is bool


def test_what_is_set_is_replaced_and_every_other_character_kept():
    changed = set_knobs(TEXT, {"rounds": 3, "name": "c", "elsewhere": 1})
    assert changed == TEXT.replace("= 12 ", "= 3 ").replace(r'"a # \"b\""', '"c"')


@pytest.mark.parametrize("value", ["/my data/of # 1", "C:\\runs", r"\d+/$", 'say "so"', "é"])
def test_a_text_is_read_back_as_it_was_set(value):
    assert read_knobs(set_knobs(TEXT, {"name": value}))["name"] == value
