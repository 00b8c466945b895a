import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.shareable import ReservedHeaderKey, ReturnCode, Shareable, make_reply

from flare import Engine, context, result
from surgical_aggregation.server.access.check_result import CheckResult
from surgical_aggregation.server.access.refusal import CONTRIBUTION_REFUSED, REFUSAL

COLUMN = (np.zeros(2, np.float32), np.zeros(1, np.float32))


def checked(sent, declared, permitted=None):
    """Return code of a result with columns of `sent`, and the reason of its refusal."""
    engine = Engine()
    fl_ctx = context("a", classes=declared, current_round=2, engine=engine)
    shareable = result({}, dict.fromkeys(sent, COLUMN), current_round=2)
    reply = CheckResult(permitted).process(shareable, fl_ctx)
    assert (engine.events == [CONTRIBUTION_REFUSED]) == (reply is not shareable)
    reason = fl_ctx.get_prop(REFUSAL)["reason"] if engine.events else None
    return reply.get_return_code(), reason


def test_a_site_that_passes_for_another_is_refused_as_such():
    fl_ctx = context("a", classes=["Edema"], current_round=2, claims="b")
    fl_ctx.set_prop(FLContextKey.TASK_NAME, "train", private=True, sticky=False)
    shareable = result({}, {"Edema": COLUMN}, current_round=2)
    assert CheckResult().process(shareable, fl_ctx) is not shareable
    refused = {"site": "a", "task": "train", "round": 2, "reason": "it calls itself 'b'"}
    assert fl_ctx.get_prop(REFUSAL) == refused


def test_declared_classes_pass():
    assert checked(["Edema"], ["Edema"]) == (ReturnCode.OK, None)


@pytest.mark.parametrize(
    ("sent", "declared", "reason"),
    [
        (["Edema", "Mass"], ["Edema"], "undeclared ['Mass']"),
        (["Edema"], ["Edema", "Mass"], "missing ['Mass']"),
        (["Edema"], [], "undeclared ['Edema']"),
    ],
)
def test_what_differs_from_the_declaration_is_refused(sent, declared, reason):
    code, said = checked(sent, declared)
    assert code == ReturnCode.EXECUTION_RESULT_ERROR
    assert reason in said


def test_a_site_with_a_personal_head_declares_nothing_and_sends_no_column():
    assert checked([], []) == (ReturnCode.OK, None)


def test_differences_are_checked_alike():
    reply = result({}, {"Edema": COLUMN}, kind=DataKind.WEIGHT_DIFF)
    assert CheckResult().process(reply, context("a", classes=["Edema"])) is reply
    refused = CheckResult().process(reply, context("a", classes=["Mass"]))
    assert refused.get_return_code() == ReturnCode.EXECUTION_RESULT_ERROR


def test_a_declared_class_that_is_not_permitted_is_refused():
    code, said = checked(["Edema", "Mass"], ["Edema", "Mass"], {"a": ["Edema"], "b": ["Mass"]})
    assert code == ReturnCode.EXECUTION_RESULT_ERROR
    assert said == "the site is not permitted to teach ['Mass']"


def test_a_site_that_is_not_in_the_table_may_teach_nothing():
    assert checked(["Edema"], ["Edema"], {"b": ["Edema"]})[0] == ReturnCode.EXECUTION_RESULT_ERROR


@pytest.mark.parametrize(
    "rubbish", [Shareable(), DXO(DataKind.WEIGHTS, data={3: 4}).to_shareable()]
)
def test_rubbish_is_refused_and_not_raised(rubbish):
    reply = CheckResult().process(rubbish, context("a", classes=["Edema"]))
    assert reply.get_return_code() == ReturnCode.EXECUTION_RESULT_ERROR


def test_the_reason_of_a_refusal_is_one_line_in_the_log(caplog):
    rubbish = Shareable()
    rubbish.set_header(ReservedHeaderKey.CONTENT_TYPE, "x\n2026-01-01 - all is well\x1b[8m")
    CheckResult().process(rubbish, context("a", classes=["Edema"]))
    (said,) = [record.getMessage() for record in caplog.records]
    assert r"x\n2026-01-01 - all is well\x1b[8m" in said and said.isprintable()


def test_an_error_reply_passes_unchanged():
    reply = make_reply(ReturnCode.EXECUTION_EXCEPTION)
    assert CheckResult().process(reply, context("a")) is reply
