import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.shareable import Shareable

from flare import lists
from surgical_aggregation.wire import variables as wire


@given(st.sets(st.text(min_size=1), max_size=8), st.integers(1, 4))
def test_split_undoes_join_whatever_the_names(names, features):
    names |= {"Nodule/Mass", "kernel", "a/kernel", "胸水"}
    body = {"stem_conv/kernel": np.zeros((3, 3), np.float32)}
    numbered = enumerate(sorted(names))
    columns = {name: (np.full(features, i, "f4"), np.float32([i])) for i, name in numbered}
    again_body, again = wire.split(wire.join(body, columns))
    assert list(again_body) == list(body)
    assert list(again) == list(columns)
    for name, (kernel, bias) in columns.items():
        np.testing.assert_array_equal(again[name][0], kernel)
        np.testing.assert_array_equal(again[name][1], bias)


@pytest.mark.parametrize("name", ["head/kernel", "head/bias", "head/Edema", "head//x"])
def test_what_is_no_column_or_half_of_one_is_refused(name):
    with pytest.raises(wire.WireError, match=name):
        wire.class_of(name)
    with pytest.raises(wire.WireError, match="'Edema' needs both"):
        wire.split({"head/Edema/kernel": np.ones(2)})


KERNEL = np.float32([[1, 2], [3, 4], [5, 6]])
DENSE = {"conv/kernel": np.ones(1), "head/kernel": KERNEL, "head/bias": np.float32([8, 9])}


def test_a_dense_head_becomes_a_copied_column_per_class():
    labelled = wire.label(DENSE, ("Nodule/Mass", "Edema"))
    assert lists(labelled) == {
        "head/Nodule/Mass/kernel": [1, 3, 5], "head/Nodule/Mass/bias": [8],
        "head/Edema/kernel": [2, 4, 6], "head/Edema/bias": [9], "conv/kernel": [1],
    }  # fmt: skip
    assert all(value.base is None for name, value in labelled.items() if wire.class_of(name))


@pytest.mark.parametrize(("variables", "classes", "reason"), [
    ({"conv/kernel": np.ones(1)}, "A", "head/kernel and head/bias; got"),
    (DENSE, "ABC", r"a head of 3 classes needs a kernel \(features, 3\).*got \(3, 2\)"),
    ({**DENSE, "head/bias": np.ones(3)}, "AB", r"got \(3, 2\) and \(3,\)"),
    ({**DENSE, "head/kernel": np.ones(2)}, "AB", r"got \(2,\)"),
    (DENSE, "AA", "a repeated class"),
])  # fmt: skip
def test_what_is_no_head_of_these_classes_is_refused(variables, classes, reason):
    with pytest.raises(wire.WireError, match=reason):
        wire.label(variables, tuple(classes))


def test_a_task_carries_whole_weights_and_a_result_also_differences():
    kinds, data = (DataKind.WEIGHTS, DataKind.WEIGHT_DIFF, DataKind.METRICS), {"a": np.ones(2)}
    whole, differences, metrics = (DXO(kind, data=data).to_shareable() for kind in kinds)
    assert wire.weights(whole).data_kind == wire.result(whole).data_kind == DataKind.WEIGHTS
    assert wire.result(differences).data_kind == DataKind.WEIGHT_DIFF
    with pytest.raises(wire.WireError, match=r"kind WEIGHTS was needed; got .*WEIGHT_DIFF'"):
        wire.weights(differences)
    with pytest.raises(wire.WireError, match=r"WEIGHTS or WEIGHT_DIFF was .*METRICS'"):
        wire.result(metrics)
    with pytest.raises(wire.WireError):
        wire.weights(Shareable())
