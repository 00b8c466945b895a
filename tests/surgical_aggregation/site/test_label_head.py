import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.shareable import ReturnCode, make_reply

from flare import Engine, context
from surgical_aggregation.site.contract.site import Site
from surgical_aggregation.site.label_head import LabelHead
from surgical_aggregation.wire.variables import WireError


class TwoClasses(Site):
    classes = ("Nodule/Mass", "Edema")

    def model(self): ...

    def data(self, split, *, training=False): ...


def labelled(data, kind=DataKind.WEIGHTS, policy=None, **components):
    shareable = DXO(kind, data=data, meta={"kept": 1}).to_shareable()
    fl_ctx = context(engine=Engine(**(components or {"site": TwoClasses()})), policy=policy)
    return from_shareable(LabelHead().process(shareable, fl_ctx))


def test_columns_leave_under_the_names_of_their_classes():
    head = {"head/kernel": np.float32([[1, 2], [3, 4]]), "head/bias": np.float32([8, 9])}
    for kind in (DataKind.WEIGHTS, DataKind.WEIGHT_DIFF):
        dxo = labelled({"conv/kernel": np.float32([7]), **head}, kind)
        assert {name: value.tolist() for name, value in dxo.data.items()} == {
            "conv/kernel": [7],
            "head/Nodule/Mass/kernel": [1, 3],
            "head/Nodule/Mass/bias": [8],
            "head/Edema/kernel": [2, 4],
            "head/Edema/bias": [9],
        }
        assert dxo.data_kind == kind and dxo.meta["kept"] == 1


def test_a_head_is_of_the_classes_that_the_policy_shares():
    head = {"head/kernel": np.float32([[1], [2]]), "head/bias": np.float32([3])}
    dxo = labelled(head, policy={"share": ["Edema"]})
    assert set(dxo.data) == {"head/Edema/kernel", "head/Edema/bias"}
    with pytest.raises(WireError, match="a head of 2 classes"):
        labelled(head)


def test_an_error_reply_passes_unchanged():
    reply = make_reply(ReturnCode.TASK_ABORTED)
    assert LabelHead().process(reply, context()) is reply
