import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.shareable import ReservedHeaderKey, ReturnCode, Shareable, make_reply

from flare import Engine, column, context, result
from surgical_aggregation.server.access.class_filters import CheckResult, SelectHead
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import BEST_ROUND, CONTRIBUTION_REFUSED, REFUSAL

BODY = {"conv/kernel": np.float32([1, 2])}
CLASSES = ("Edema", "Hernia", "Mass")
SERVER = {"permitted": {"a": ["Edema", "Mass"], "b": ["Mass"]}}


def columns(classes):
    return {name: column(number) for number, name in enumerate(sorted(classes))}


def task(classes=CLASSES):
    data, meta = wire.join(BODY, columns(classes)), {"classes": list(classes)}
    return DXO(DataKind.WEIGHTS, data=data, meta=meta).to_shareable()


def received(select=None, whole=None, **site):
    """What site "a" gets."""
    return from_shareable((select or SelectHead()).process(whole or task(), context("a", **site)))


def checked(sent, declared, permitted=None, props=(), **sender):
    """Return code of site "a"'s result, and the reason of its refusal."""
    engine, facts = Engine(), {"site": "a", "task": "train", "round": 2}
    props = {FLContextKey.TASK_NAME: "train", **dict(props)}
    fl_ctx = context("a", declared, 2, engine=engine, props=props, **sender)
    reply = CheckResult(permitted).process(sent, fl_ctx)
    assert (engine.events == [CONTRIBUTION_REFUSED]) == (reply is not sent)
    refusal = fl_ctx.get_prop(REFUSAL) or {"reason": None, **facts}
    assert {**refusal, "reason": None} == {"reason": None, **facts}
    return reply.get_return_code(), refusal["reason"]


def trains(declared, permitted=None, **sender):
    return checked(result({}, columns(declared)), declared, permitted, **sender)[0] == ReturnCode.OK


class TestSelectHead:
    @pytest.mark.parametrize("best", [None, 0])
    def test_a_site_gets_body_and_best_round_and_its_own_columns_and_can_change_none(self, best):
        whole, declared = task(), ["Mass", "Edema", "Not yet trained"]
        original = from_shareable(whole).data
        reply = SelectHead().process(whole, context("a", declared, props={BEST_ROUND: best}))
        dxo = from_shareable(reply)
        body, own = wire.split(dxo.data)
        assert list(body) == ["conv/kernel"] and sorted(own) == ["Edema", "Mass"]
        assert own["Mass"][0].tolist() == [2, 2]
        assert "Hernia" not in str(reply) and reply.get_header(BEST_ROUND) == best
        for name, value in dxo.data.items():
            assert np.shares_memory(value, original[name])  # no copy for each site
            with pytest.raises(ValueError, match="read-only"):
                value[:] = 99
        dxo.data.clear()
        assert "head/Hernia/kernel" in original and original["conv/kernel"].flags.writeable

    @pytest.mark.parametrize("declared", [(), [["Edema"]]], ids=["nothing", "no name"])
    def test_a_site_that_declared_no_classes_gets_the_body_alone(self, declared, logged):
        assert list(received(whole=task(()), classes=declared).data) == ["conv/kernel"]
        assert logged["error"] == []  # where heads are personal
        assert list(received(classes=declared).data) == ["conv/kernel"]
        assert "a has declared no permitted classes" in logged["error"][0]

    def test_what_is_no_model_is_withheld(self):
        metrics = DXO(DataKind.METRICS, data={"Hernia": 1.0}).to_shareable()
        dense = DXO(DataKind.WEIGHTS, data={"head/kernel": np.ones(2)}).to_shareable()
        for whole in (Shareable(), metrics, dense):
            assert received(whole=whole, classes=["Edema"]).data == {}


@pytest.mark.parametrize("make", [SelectHead, CheckResult])
def test_one_that_does_not_know_its_site_passes_nothing_and_ends_the_run(make, panics):
    whole = result(BODY, columns(CLASSES))
    reply = make().process(whole, context("a", classes=CLASSES, authenticated=False))
    assert f"{make.__name__} needs the site of a message" in panics[0]
    assert "Edema" not in str(reply) and "conv" not in str(reply)


ODD = Shareable()
ODD.set_header(ReservedHeaderKey.CONTENT_TYPE, "x\n2026-01-01 - all is well\x1b[8m")
REFUSED = [
    (result({}, columns(["Edema", "Mass"])), ["Edema"], {}, "undeclared ['Mass']"),
    (result({}, columns(["Edema"])), ["Edema", "Mass"], {}, "missing ['Mass']"),
    (result({}, columns(["Edema"])), [], {}, "undeclared ['Edema']"),
    (
        result({}, columns(["Edema"]), kind=DataKind.WEIGHT_DIFF), ["Edema"],
        {"permitted": {"a": ["Mass"]}}, "the site is not permitted to train ['Edema']",
    ),
    (result({}, columns(["Edema"])), ["Edema"], {"claims": "b"}, "it calls itself 'b'"),
    (DXO(DataKind.WEIGHTS, data={3: 4}).to_shareable(), ["Edema"], {}, "it could not be read ("),
    (ODD, ["Edema"], {}, "x\\n2026-01-01 - all is well\\x1b[8m"),
]  # fmt: skip


class TestCheckResult:
    def test_declared_classes_pass_and_a_personal_head_and_an_error_reply(self):
        assert trains(["Edema"]) and trains([])
        reply = make_reply(ReturnCode.EXECUTION_EXCEPTION)
        assert CheckResult().process(reply, context("a")) is reply

    @pytest.mark.parametrize(("sent", "declared", "sender", "reason"), REFUSED)
    def test_what_differs_is_refused_in_one_log_line(self, sent, declared, sender, reason, caplog):
        code, why = checked(sent, declared, **sender)
        (line,) = [record.getMessage() for record in caplog.records]
        assert code == ReturnCode.EXECUTION_RESULT_ERROR and reason in why
        assert reason in line and line.isprintable()


class TestPermitted:
    @pytest.mark.parametrize(("job", "policy", "permitted"), [
        (None, {"permitted": {"heart": {"a": ["Edema"]}}}, ("Edema",)),  # a study's own
        (None, {"permitted": {"lung": {"a": ["Edema"]}}}, ()),
        (None, SERVER, ("Edema", "Mass")),
        ({"a": ["Edema"], "b": ["Mass"]}, None, ("Edema",)),
        ({"a": ["Mass", "Hernia"]}, SERVER, ("Mass",)), (None, {}, CLASSES),
        (None, {"permitted": {"b": ["Edema"]}}, ()), ({"b": ["Edema"]}, None, ()),
        (None, {"permitted": {"a": "Edema"}}, ()),  # until the run has ended for it
    ])  # fmt: skip
    def test_a_class_must_be_in_every_table(self, job, policy, permitted):
        of_study = {"policy": policy, "props": {FLContextKey.JOB_META: {"study": "heart"}}}
        got = received(SelectHead(job), classes=CLASSES, **of_study)
        assert wire.classes_of(got.data) == permitted
        for name in CLASSES:
            assert trains([name], job, **of_study) == (name in permitted)

    @pytest.mark.parametrize("cls", [SelectHead, CheckResult])
    @pytest.mark.parametrize(("table", "policy", "reason"), [
        (None, {"permitted": {"a": "Edema"}}, "permitted"), ({"a": "Edema"}, None, "permitted"),
        (None, {"permitted": {"a": ["Mass"], "b": ["mass"]}}, "'Mass' and 'mass', which are"),
    ])  # fmt: skip
    def test_an_unusable_table_ends_the_run_once(self, cls, table, policy, reason, panics):
        fl_ctx = context(policy=policy)
        cls(SERVER["permitted"]).handle_event(EventType.START_RUN, context())
        cls(table).handle_event(EventType.END_RUN, fl_ctx)
        assert panics == []
        cls(table).handle_event(EventType.START_RUN, fl_ctx)
        fl_ctx.set_prop(FLContextKey.FATAL_SYSTEM_ERROR, True, private=True, sticky=True)
        cls(table).handle_event(EventType.START_RUN, fl_ctx)  # another such filter
        (panic,) = panics
        assert reason in panic
