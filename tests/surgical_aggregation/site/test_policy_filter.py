import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind, MetaKey, from_shareable
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable, make_reply

from flare import Engine, context
from surgical_aggregation.site.policy_filter import PolicyGate
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import POSITIVES

BODY = {"dense/kernel": np.zeros((3, 4), np.float32)}
COLUMN = (np.zeros(4, np.float32), np.zeros(1, np.float32))
METRICS = {
    "bce": 0.5, "bce/Edema": 0.4, "bce/Nodule/Mass": 0.5, "bce/Mass": 0.6, "auroc/Edema": 0.7,
    "positives/Edema": 3.0, "negatives/Nodule/Mass": 2.0, "images": 20.0,
}  # fmt: skip


@pytest.fixture
def gate(tmp_path, tiny):
    """The gate at a site; `engine` is that of the last call."""
    site = tiny("Edema", "Nodule/Mass", "Mass")

    def process(shareable, policy=None, **components):
        engine = Engine(tmp_path, **{"site": site, **components})
        process.engine = engine
        return PolicyGate().process(shareable, context(engine=engine, policy=policy))

    return process


def dense(units):
    head = {"head/kernel": np.zeros((4, units)), "head/bias": np.zeros(units)}
    return {**BODY, **head}


def labelled(*classes):
    return wire.join(BODY, dict.fromkeys(classes, COLUMN))


def model(data, kind=DataKind.WEIGHTS, **meta):
    return DXO(kind, data=data, meta=meta).to_shareable()


WITHHOLDS_MASS = {"share": ["Edema", "Nodule/Mass"]}


class TestModel:
    @pytest.mark.parametrize("kind", [DataKind.WEIGHTS, DataKind.WEIGHT_DIFF])
    @pytest.mark.parametrize("data", [BODY, dense(2), labelled("Edema"), labelled("Nodule/Mass")])
    def test_with_permitted_classes_passes_whole(self, gate, data, kind):
        reply = gate(model(data, kind), WITHHOLDS_MASS)
        assert from_shareable(reply).data_kind == kind
        assert from_shareable(reply).data == data

    @pytest.mark.parametrize("kind", [DataKind.WEIGHTS, DataKind.WEIGHT_DIFF])
    @pytest.mark.parametrize(
        "data",
        [
            dense(3),
            {**BODY, "head/kernel": np.zeros((4, 3))},
            {**BODY, "head/bias": np.zeros(3)},
            labelled("Edema", "Mass"),
            {**labelled("Mass"), **dense(2)},
            {**BODY, "head/odd": np.zeros(4)},
        ],
    )
    def test_with_another_head_is_kept_here_for_a_reason_in_the_notes_alone(
        self, gate, data, kind, caplog
    ):
        caplog.set_level("INFO")
        reply = gate(model(data, kind), WITHHOLDS_MASS)
        assert reply.get_return_code() == ReturnCode.EXECUTION_RESULT_ERROR
        assert "DXO" not in reply
        assert "policy keeps the result here; local_notes/job.txt says why" in caplog.text
        assert "policy keeps the result here: " in gate.engine.notes()
        assert "Mass" not in caplog.text  # FLARE may stream any log to the server
        assert "units" not in caplog.text and gate.engine.logged == []  # events reach admins

    @pytest.mark.parametrize(
        ("data", "kind", "policy", "components"),
        [
            ({"head/kernel": "no array"}, DataKind.WEIGHTS, WITHHOLDS_MASS, {}),
            ({"params": {}}, DataKind.FL_MODEL, WITHHOLDS_MASS, {}),
            ({"params": {}}, DataKind.COLLECTION, WITHHOLDS_MASS, {}),
            (dense(2), DataKind.WEIGHTS, WITHHOLDS_MASS, {"site": None}),
            (dense(3), DataKind.WEIGHTS, {"share": "Edema"}, {}),
        ],
        ids=["breaks the gate", "cannot be looked into", "neither", "no site", "odd policy"],
    )
    def test_that_cannot_be_judged_is_kept_here(self, gate, caplog, data, kind, policy, components):
        reply = gate(model(data, kind), policy, **components)
        assert reply.get_return_code() == ReturnCode.EXECUTION_RESULT_ERROR
        assert "this site's policy keeps the result here: " in gate.engine.notes()
        assert "AttributeError" not in caplog.text

    def test_goes_with_counts_only_where_the_policy_shares_them(self, gate):
        meta = {
            POSITIVES: {"Edema": 3}, MetaKey.INITIAL_METRICS: METRICS,
            MetaKey.NUM_STEPS_CURRENT_ROUND: 20,
        }  # fmt: skip
        assert from_shareable(gate(model(dense(3), **meta), {"report_counts": True})).meta == meta
        kept = from_shareable(gate(model(dense(2), **meta), WITHHOLDS_MASS)).meta
        assert kept == {
            MetaKey.INITIAL_METRICS: {
                "bce": 0.5, "bce/Edema": 0.4, "bce/Nodule/Mass": 0.5, "auroc/Edema": 0.7,
            },
            MetaKey.NUM_STEPS_CURRENT_ROUND: 20,
        }  # fmt: skip


def test_metrics_of_withheld_classes_and_counts_stay_here(gate):
    sent = model(METRICS, DataKind.METRICS)
    assert from_shareable(gate(sent, {"report_counts": True})).data == METRICS
    assert set(from_shareable(gate(sent, WITHHOLDS_MASS)).data) == {
        "bce", "bce/Edema", "bce/Nodule/Mass", "auroc/Edema",
    }  # fmt: skip


@pytest.mark.parametrize(
    "shareable",
    [
        make_reply(ReturnCode.TASK_ABORTED),
        Shareable({"statistics": b"1"}),
        DXO(DataKind.STATISTICS, data={"count": 3}).to_shareable(),
    ],
)
def test_what_is_no_model_passes_unchanged_also_in_a_job_without_site(gate, shareable):
    before = dict(shareable)
    assert gate(shareable, WITHHOLDS_MASS, site=None) is shareable
    assert dict(shareable) == before
