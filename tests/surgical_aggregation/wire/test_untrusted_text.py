import pytest
from hypothesis import given
from hypothesis import strategies as st
from nvflare.apis.fl_component import FLComponent

from flare import Engine, context
from surgical_aggregation.server.access.refusal_events import announce
from surgical_aggregation.site.site_memory import site_folder
from surgical_aggregation.wire.headers import REFUSAL
from surgical_aggregation.wire.untrusted_text import LONGEST, checked_job, one_line


@pytest.mark.parametrize(("text", "shown"), [
    *((text, text) for text in ("", "Nodule/Mass, 0.5", "Ödem", "肺水腫")),
    ("a\nb\r\tc", r"a\nb\r\tc"),
    ("\x1b[2Ja\u2028b\u202ec\x85\ud800", r"\x1b[2Ja\u2028b\u202ec\x85\ud800"),
    ("a" * 5000, "a" * LONGEST + " ..."),
])  # fmt: skip
def test_what_cannot_be_printed_is_escaped_and_a_long_text_cut(text, shown):
    assert one_line(text) == shown


@given(st.text(st.characters(codec=None)))
def test_nothing_is_left_that_cannot_be_printed(text):
    assert one_line(text).isprintable()


def test_so_are_task_and_reason_of_a_refusal_wherever_they_go():
    fl_ctx = context()
    announce(FLComponent(), fl_ctx, "north", "te\nst", 3, "a\nb" + "x" * 10**6)
    refusal = fl_ctx.get_prop(REFUSAL)
    assert (refusal["task"], refusal["reason"][:4]) == (r"te\nst", r"a\nb")
    assert len(refusal["reason"]) < LONGEST + 10


@pytest.mark.parametrize("job", ["../../x", "..", "", "a/b", "a\\b", "a\n", "a b", "é", 3, None])
def test_a_jobs_id_leads_nowhere_else(job, tmp_path):
    for own in ("a03b9a66-2687-4d4c-a55c-390235f32b97", "simulate_job"):
        assert checked_job(own) == own
    with pytest.raises(ValueError, match=r"letters, digits, '-' and '_'; got"):
        site_folder(context(engine=Engine(tmp_path)), job)
