from pathlib import Path

import pytest
from pyhocon import ConfigFactory

from cxr_study.jobs.command_line_settings import JobError
from cxr_study.jobs.job_folder import settings_in, with_settings

JOBS = Path(__file__).parents[3] / "jobs"

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


def test_settings_are_the_primitive_values_at_the_top_with_their_types():
    found = settings_in(TEXT)
    assert found == {"rounds": 12, "rate": 1e-3, "name": 'a # "b"', "mixed": False}
    assert type(found["rounds"]) is int and type(found["mixed"]) is bool


def test_what_is_set_is_replaced_and_every_other_character_kept():
    changed = with_settings(TEXT, {"rounds": 3, "name": "c", "elsewhere": 1})
    assert changed == TEXT.replace("= 12 ", "= 3 ").replace(r'"a # \"b\""', '"c"')


@pytest.mark.parametrize("value", ["/my data/of # 1", "C:\\runs", r"\d+/$", 'say "so"', "é"])
def test_a_text_is_read_back_as_it_was_set(value):
    assert settings_in(with_settings(TEXT, {"name": value}))["name"] == value


@pytest.mark.parametrize(
    "config",
    sorted(JOBS.glob("*/app_*/config/*.conf")),
    ids=lambda path: str(path.relative_to(JOBS)),
)
def test_values_are_those_that_flares_parser_reads(config):
    text = config.read_text()
    found, parsed = settings_in(text), ConfigFactory.parse_string(text)
    assert found == {name: parsed[name] for name in found}
    assert [type(value) for value in found.values()] == [type(parsed[name]) for name in found]


@pytest.mark.parametrize("value", ["fast", "'fast'", "1 minute", "yes", "1e", ""])
def test_a_value_that_is_none_is_refused_by_its_setting_and_line(value):
    with pytest.raises(JobError) as error:
        settings_in(TEXT.replace("1e-3", value))
    assert str(error.value) == (
        "line 4: setting 'rate' needs a number, true, false, or a text in double quotes; got "
        f"{value}."
    )
