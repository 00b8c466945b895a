"""What leaves a site: columns named by class, and the policy's final check of every result."""

import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable, make_reply

from flare import Engine, context
from surgical_aggregation.site.label_head import LabelHead
from surgical_aggregation.site.policy_filter import PolicyGate
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import FEATURES, LACKING, POSITIVES

BODY = {"dense/kernel": np.zeros((3, 4), np.float32)}
COLUMN = (np.zeros(4, np.float32), np.zeros(1, np.float32))
KINDS, OTHERS = (DataKind.WEIGHTS, DataKind.WEIGHT_DIFF), (DataKind.FL_MODEL, DataKind.COLLECTION)
WITHHOLDS_MASS = {"share": ["Edema", "Nodule/Mass"]}
ROUNDED = {"bce": 0.5, "bce/Nodule/Mass": 0.0412, "auroc/Edema": 0.7, "auroc": 0.7}
METRICS = {
    **ROUNDED, "bce/Nodule/Mass": 0.041234, "auroc/Edema": 0.7001, "bce/Mass": 0.6, "images": 20.0,
    "positives/Edema": 99.0, "negatives/Edema": 99.0,
}  # fmt: skip


@pytest.fixture
def passed(tmp_path, tiny):
    """Output of the filter for a result at the site; `engine` is that of the last call."""

    def process(shareable, policy=None, through=PolicyGate, **components):
        site = tiny("Edema", "Nodule/Mass", "Mass")
        process.engine = Engine(tmp_path, **{"site": site, **components})
        return through().process(shareable, context(engine=process.engine, policy=policy))

    return process


def dense(units):
    head = {"head/kernel": np.zeros((4, units)), "head/bias": np.zeros(units)}
    return {**BODY, **head}


def labelled(*classes):
    return wire.join(BODY, dict.fromkeys(classes, COLUMN))


def model(data, kind=DataKind.WEIGHTS, **meta):
    return DXO(kind, data=data, meta=meta).to_shareable()


def test_columns_leave_under_the_names_of_the_classes_that_the_policy_shares(passed):
    head = {"head/kernel": np.float32([[1, 2], [3, 4]]), "head/bias": np.float32([8, 9])}
    for kind in KINDS:
        sent = model(BODY | head, kind, kept=1)
        dxo = from_shareable(passed(sent, WITHHOLDS_MASS, LabelHead))
        assert {name: v.tolist() for name, v in dxo.data.items() if name not in BODY} == {
            "head/Edema/kernel": [1, 3], "head/Edema/bias": [8],
            "head/Nodule/Mass/kernel": [2, 4], "head/Nodule/Mass/bias": [9],
        }  # fmt: skip
        assert BODY.keys() < dxo.data.keys() and (dxo.data_kind, dxo.meta["kept"]) == (kind, 1)
    with pytest.raises(wire.WireError, match="a head of 3 classes"):
        passed(model(head), None, LabelHead)
    reply = make_reply(ReturnCode.TASK_ABORTED)
    assert passed(reply, None, LabelHead) is reply


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", [BODY, dense(2), labelled("Edema"), labelled("Nodule/Mass")])
def test_a_model_with_permitted_classes_passes_whole(passed, data, kind):
    reply = from_shareable(passed(model(data, kind), WITHHOLDS_MASS))
    assert (reply.data_kind, reply.data) == (kind, data)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", [
    dense(3), labelled("Edema", "Mass"), {**labelled("Mass"), **dense(2)},
    {**BODY, "head/kernel": np.zeros((4, 3))}, {**BODY, "head/bias": np.zeros(3)},
    {**BODY, "head/odd": np.zeros(4)},
])  # fmt: skip
def test_a_model_with_another_head_stays_and_the_notes_alone_say_why(passed, data, kind, caplog):
    reply = passed(model(data, kind), WITHHOLDS_MASS)
    assert reply.get_return_code() == ReturnCode.EXECUTION_RESULT_ERROR and "DXO" not in reply
    assert "policy withholds the result; see local_notes/job.txt" in caplog.text
    assert "policy withholds the result: " in passed.engine.notes()
    assert "Mass" not in caplog.text  # FLARE may stream any log to the server
    assert "units" not in caplog.text and passed.engine.logged == []  # events reach admins


@pytest.mark.parametrize(("sent", "policy", "components"), [
    (model({"head/kernel": "no array"}), WITHHOLDS_MASS, {}),
    *((model({"params": {}}, kind), WITHHOLDS_MASS, {}) for kind in OTHERS),
    (model(dense(2)), WITHHOLDS_MASS, {"site": None}), (model(dense(3)), {"share": "Edema"}, {}),
], ids=["breaks the gate", "cannot be looked into", "neither", "no site",
        "odd policy"])  # fmt: skip
def test_a_model_that_cannot_be_judged_stays(passed, caplog, sent, policy, components):
    reply = passed(sent, policy, **components)
    assert reply.get_return_code() == ReturnCode.EXECUTION_RESULT_ERROR
    assert "this site's policy withholds the result: " in passed.engine.notes()
    assert "AttributeError" not in caplog.text


def test_metrics_of_withheld_classes_and_counts_stay_also_those_beside_a_model(passed):
    counted = {POSITIVES: {"Edema": 3}, MetaKey.INITIAL_METRICS: METRICS}
    counted[LACKING] = {"Edema": "positive", "Mass": "negative"}
    meta = {MetaKey.NUM_STEPS_CURRENT_ROUND: 20, **counted}
    whole, sent = {"report_counts": True}, model(METRICS, DataKind.METRICS)
    features = {FEATURES: {"mean": [0.5]}}
    for policy, kept in (({"report_features": True}, features), (whole, {})):
        tested = model(METRICS, DataKind.METRICS, **features)
        assert from_shareable(passed(tested, policy)).meta == kept
    assert from_shareable(passed(model(dense(3), **meta), whole)).meta == meta
    assert from_shareable(passed(sent, whole)).data == METRICS
    assert from_shareable(passed(sent, WITHHOLDS_MASS)).data == ROUNDED
    kept = {MetaKey.INITIAL_METRICS: ROUNDED, MetaKey.NUM_STEPS_CURRENT_ROUND: 20}
    found = from_shareable(passed(model(dense(2), **meta), WITHHOLDS_MASS)).meta
    assert found == {**kept, LACKING: {"Edema": "positive"}}


@pytest.mark.parametrize("shareable", [
    make_reply(ReturnCode.TASK_ABORTED), Shareable({"statistics": b"1"}),
    DXO(DataKind.STATISTICS, data={"count": 3}).to_shareable(),
])  # fmt: skip
def test_what_is_no_model_passes_unchanged_also_in_a_job_without_site(passed, shareable):
    before = dict(shareable)
    assert passed(shareable, WITHHOLDS_MASS, site=None) is shareable
    assert dict(shareable) == before
