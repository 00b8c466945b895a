import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.shareable import ReturnCode, make_reply

from flare import Engine, context
from surgical_aggregation.site.contract.site import Site, SiteError
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
    dxo = labelled(
        {
            "conv/kernel": np.float32([7]),
            "head/kernel": np.float32([[1, 2], [3, 4], [5, 6]]),
            "head/bias": np.float32([8, 9]),
        }
    )
    assert {name: value.tolist() for name, value in dxo.data.items()} == {
        "conv/kernel": [7],
        "head/Nodule/Mass/kernel": [1, 3, 5],
        "head/Nodule/Mass/bias": [8],
        "head/Edema/kernel": [2, 4, 6],
        "head/Edema/bias": [9],
    }
    assert dxo.meta["kept"] == 1


def test_differences_stay_differences():
    head = {"head/kernel": np.zeros((3, 2), np.float32), "head/bias": np.zeros(2, np.float32)}
    assert labelled(head, DataKind.WEIGHT_DIFF).data_kind == DataKind.WEIGHT_DIFF


def test_a_head_is_of_the_classes_that_the_policy_lets_out():
    head = {"head/kernel": np.float32([[1], [2]]), "head/bias": np.float32([3])}
    dxo = labelled(head, policy={"share": ["Edema"]})
    assert set(dxo.data) == {"head/Edema/kernel", "head/Edema/bias"}
    with pytest.raises(WireError, match="a head of 1 classes"):
        labelled(
            {"head/kernel": np.zeros((3, 2)), "head/bias": np.zeros(2)}, policy={"share": ["Edema"]}
        )


def test_an_error_reply_passes_unchanged():
    reply = make_reply(ReturnCode.TASK_ABORTED)
    assert LabelHead().process(reply, context()) is reply


def test_a_job_without_site_is_told_so():
    with pytest.raises(SiteError, match="Site component with id 'site'; got str"):
        labelled({"head/kernel": np.zeros((3, 2)), "head/bias": np.zeros(2)}, site="no site")
