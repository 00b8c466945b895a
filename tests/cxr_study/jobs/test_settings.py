import pytest

from cxr_study.jobs.job_settings import JobError
from cxr_study.jobs.settings import parse


class TestParse:
    def test_a_knob_is_for_all_sites_or_for_the_one_before_the_colon(self):
        assert parse(["num_rounds=20", "nih:learning_rate=1e-5", "nih:epochs=2"]) == (
            {"num_rounds": 20},
            {"nih": {"learning_rate": 1e-5, "epochs": 2}},
        )

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("x=3", 3),
            ("x=1e-5", 1e-5),
            ("x=true", True),
            ("x=densenet121", "densenet121"),
            ("x=a=b:c", "a=b:c"),
            ("x=", ""),
        ],
    )
    def test_a_value_is_json_or_else_a_text(self, text, value):
        (parsed,) = parse([text])[0].values()
        assert parsed == value and type(parsed) is type(value)

    def test_the_later_of_two_counts(self):
        assert parse(["x=1", "a:x=1", "x=2", "a:x=2"]) == ({"x": 2}, {"a": {"x": 2}})

    @pytest.mark.parametrize("text", ["x", "=3", ":x=3", "a:=3", ""])
    def test_another_form_is_refused(self, text):
        with pytest.raises(JobError, match=r"--set needs KNOB=VALUE, .* or SITE:KNOB=VALUE; got"):
            parse([text])
