import numpy as np
import pytest
from nvflare.apis.dxo import DXO, DataKind, from_shareable
from nvflare.apis.shareable import Shareable

from flare import context
from surgical_aggregation.server.access.select_head import SelectHead
from surgical_aggregation.server.models.global_model import BEST_ROUND
from surgical_aggregation.wire import variables as wire

BODY = {"conv/kernel": np.float32([1, 2])}


def column(value):
    return (np.full(2, value, np.float32), np.float32([value]))


@pytest.fixture
def task():
    columns = {name: column(i) for i, name in enumerate(["Edema", "Hernia", "Mass"])}
    meta = {"classes": ["Edema", "Hernia", "Mass"]}
    return DXO(DataKind.WEIGHTS, data=wire.join(BODY, columns), meta=meta).to_shareable()


def received(task, **site):
    return from_shareable(SelectHead().process(task, context("a", **site)))


def test_a_site_gets_the_body_and_its_own_columns(task):
    body, columns = wire.split(received(task, classes=["Mass", "Edema", "Not yet taught"]).data)
    assert list(body) == ["conv/kernel"]
    assert sorted(columns) == ["Edema", "Mass"]
    assert columns["Mass"][0].tolist() == [2, 2]


def test_a_site_that_declared_nothing_gets_the_body_alone(task):
    assert list(received(task).data) == ["conv/kernel"]


def test_meta_does_not_go_out(task):
    assert "Hernia" not in str(received(task, classes=["Edema"]).meta)


def test_nothing_is_shared_between_sites(task):
    original = from_shareable(task).data
    first = received(task.make_copy() if hasattr(task, "make_copy") else task, classes=["Edema"])
    for value in first.data.values():
        value[:] = 99
    assert original["conv/kernel"].tolist() == [1, 2]
    assert original["head/Edema/kernel"].tolist() == [0, 0]
    assert "head/Hernia/kernel" in original


def test_what_is_no_model_is_withheld():
    for task in (Shareable(), DXO(DataKind.METRICS, data={"Hernia": 1.0}).to_shareable()):
        assert received(task, classes=["Edema"]).data == {}


def test_a_malformed_declaration_counts_as_none(task):
    fl_ctx = context("a", classes=[["Edema"]])
    assert list(from_shareable(SelectHead().process(task, fl_ctx)).data) == ["conv/kernel"]


def test_a_class_that_the_site_may_not_hold_is_withheld_whatever_it_declares(task):
    select = SelectHead({"a": ["Edema"], "b": ["Mass"]})
    dxo = from_shareable(select.process(task, context("a", classes=["Edema", "Mass"])))
    assert wire.classes_of(dxo.data) == ("Edema",)


def test_a_site_that_is_not_in_the_table_gets_the_body_alone(task):
    dxo = from_shareable(
        SelectHead({"b": ["Edema"]}).process(task, context("a", classes=["Edema"]))
    )
    assert list(dxo.data) == ["conv/kernel"]


@pytest.mark.parametrize("best", [None, 0, 3])
def test_the_round_of_the_best_model_goes_with_every_task(task, best):
    fl_ctx = context("a", classes=["Edema"])
    fl_ctx.set_prop(BEST_ROUND, best, private=True, sticky=False)
    assert SelectHead().process(task, fl_ctx).get_header(BEST_ROUND) == best


def test_where_heads_are_personal_nothing_is_amiss(logged):
    task = DXO(DataKind.WEIGHTS, data=dict(BODY)).to_shareable()
    assert list(received(task).data) == ["conv/kernel"]
    assert logged["error"] == []
