"""What makes a contribution unfit, and what it may not exceed."""

import dataclasses
import re

import numpy as np
import pytest

from surgical_aggregation.aggregation.batch_norm_strategy import VariableKinds
from surgical_aggregation.aggregation.class_names import Spellings
from surgical_aggregation.aggregation.result_checks import Expected, added, fault, oversize
from surgical_aggregation.aggregation.site_result import Limits, SiteResult, limits

BODY = {"conv/kernel": np.zeros((2, 2), np.float32), "bn/gamma": np.ones(2, np.float32)}
COLUMN = (np.zeros(3, np.float32), np.zeros(1, np.float32))
GOOD = SiteResult(BODY, {"Edema": COLUMN}, samples=10, positives={"Edema": 2})


def expected(body=BODY, kinds=VariableKinds(), strategy="fedavg", **facts):  # noqa: B008
    return Expected(body, 3, kinds, strategy, **facts)


def changed(**changes):
    return dataclasses.replace(GOOD, **changes)


@pytest.mark.parametrize("changes", [
    {}, {"samples": None, "positives": None},
    *({"positives": {"Edema": n}} for n in (0, np.int32(7))),
    *({"samples": n} for n in (1, 0.5, 10**12, np.int64(7), np.float32(7), np.uint8(7))),
], ids=str)  # fmt: skip
def test_a_good_one_passes(changes):
    assert fault(changed(**changes), expected()) is None


def body(**variables):
    """The body with other variables; `_` stands for a slash, None for a missing one."""
    whole = BODY | {name.replace("_", "/"): value for name, value in variables.items()}
    return changed(body={name: value for name, value in whole.items() if value is not None})


def column(kernel=COLUMN[0], bias=COLUMN[1]):
    return changed(columns={"Edema": (kernel, bias)})


def named(*names):
    return changed(columns=dict.fromkeys(names, COLUMN), positives=None)


NAN = np.float32([[0, np.nan], [0, 0]])
BAD = {
    "NaN in the body": (body(conv_kernel=NAN), "'conv/kernel' has 1 values"),
    "infinity in a column": (column(np.float32([np.inf, 0, 0])), "kernel of Edema.* has 1"),
    "shape": (body(bn_gamma=np.ones(3, "f4")), r"'bn/gamma' must have shape \(2,\); got \(3,\)"),
    "column's length": (column(np.zeros(4, "f4")), r"of Edema' must have shape \(3,\); got \(4,\)"),
    "bias's shape": (column(bias=np.zeros(2, "f4")), "bias of Edema"),
    "precision": (body(bn_gamma=np.ones(2, "f2")), "array of float32; got float16"),
    "far from zeros": (column(np.float32([0, -1e30, 0])), "Edema' has 1 values that moved by more"),
    "dates": (body(bn_gamma=np.zeros(2, "M8[s]")), r"of float32; got datetime64\[s\]"),
    "column's precision": (column(np.zeros(3), np.zeros(1)), "of Edema' .* float32; got float64"),
    "no array": (body(bn_gamma=[1, 2]), "array of float32; got list"),
    "unknown variable": (body(x=BODY["bn/gamma"]), "body variables 'x' must not be sent"),
    "missing variable": (body(bn_gamma=None), "'bn/gamma' are missing"),
    "class twice": (named("Edema", "edema"), "two spellings of one class"),
    "unprintable class": (named("Edema\0"), "printable text"),
    "empty head": (changed(columns={}), "head is empty"),
    "too long a class name": (named("x" * 70_000), "200 bytes.* has 70000"),
    "no samples": (changed(samples=0), r"must be a number > 0 and at most 1e\+12; got 0"),
    "NaN samples": (changed(samples=float("nan")), "got nan"),
    "a bool of samples": (changed(samples=True), "got True"),
    "samples beyond what any site has": (changed(samples=10**12 + 1), "got 1000000000001"),
    "samples that Python does not print": (changed(samples=-(10**5000)), "number of 16610 bits"),
    "a long text for samples": (changed(samples="9" * 10**6), "got '9{,40}[.]{3}9{,40}'$"),
    "an array of samples": (changed(samples=np.ones(3)), "got array"),
    "negative positives": (changed(positives={"Edema": -1}), "positives of 'Edema'"),
    "positives that are no table": (changed(positives=[10**5000]), "by class; got .*16610 bits"),
    "positives in halves": (changed(positives={"Edema": 1.5}), "must be a count .* got 1.5"),
    "lacking a class that is not there": (changed(lacking={"Mass": "positive"}), "'Mass'"),
    "lacking what no class can": (changed(lacking={"Edema": 10**9}), "'positive', 'negative' or"),
    "lacking, no table": (changed(lacking=[1]), "by class; got list"),
    "a bool of positives": (changed(positives={"Edema": True}), "must be a count .* got True"),
    "positives of a class not reported": (changed(positives={}), "positives of 'Edema'"),
}


@pytest.mark.parametrize(("contribution", "reason"), BAD.values(), ids=BAD.keys())
def test_refuses(contribution, reason):
    assert re.search(reason, fault(contribution, expected()))


@pytest.mark.parametrize(("kernel", "variance", "bias", "reason"), [
    (2, 4e9, 2, None),  # a running variance may go as far as the square
    (3, 4e9, 1, "'conv/kernel' has 4 values that moved by more than 6.55e+04 (largest "),
    (1, 5e9, 1, "'bn/moving_variance' has 1 values that moved by more than 4.291e+09"),
    (1, 4e9, 2.1, "'bias of Edema' has 1 values"),
])  # fmt: skip
def test_a_value_may_be_so_far_from_the_one_that_the_site_received(kernel, variance, bias, reason):
    far, name = np.full((2, 2), 65504, np.float32), "bn/moving_variance"
    start, kinds = {"conv/kernel": far, name: np.float32([0])}, VariableKinds(frozenset({name}))
    wanted = expected(start, kinds, columns={"Edema": (COLUMN[0], far[0, :1])})
    sent = {"conv/kernel": kernel * far, name: np.float32([variance])}
    columns = {"Edema": (COLUMN[0], np.float32(bias) * far[0, :1])}
    found = fault(changed(body=sent, columns=columns), wanted)
    assert found is None if reason is None else found.startswith(reason)


class TestKnownClasses:
    """One class has one spelling over all sites and rounds."""

    def fault(self, *names, known=("Edema", "Mass"), **limits):
        return fault(named(*names), expected(known=Spellings(known), limits=Limits(**limits)))

    def test_another_spelling_is_refused_with_the_one_that_is_known(self):
        reason = self.fault("Hernia", "EDEMA")
        assert reason.startswith("class 'EDEMA' is known as 'Edema' in this run")
        assert "use that spelling at this site" in reason
        assert self.fault("edema", known=("Edema", "edema")) is None  # a model that has both

    def test_new_classes_may_fill_the_model_up_to_its_limit(self):
        assert self.fault("Edema", model_classes=1) is None
        assert self.fault("Edema", "Hernia", model_classes=3) is None
        reason = self.fault("Edema", "Hernia", "Nodule", model_classes=3)
        assert "with its 2 new classes the global model would have 4" in reason
        assert "the global model would have 4; the limit is 3" in reason


def test_a_site_has_so_many_classes_at_most_in_columns_and_positives():
    many = changed(columns={f"class {i}": COLUMN for i in range(1001)})
    reason = "it has 1001 classes; the limit is 1000"
    assert reason in oversize(many, Limits())
    assert oversize(many, Limits(site_classes=1001)) is None
    assert reason in oversize(changed(positives={str(i): 1 for i in range(1001)}), Limits())


def test_bytes_are_those_of_the_variables_and_of_their_names():
    size = 4 * (4 + 2 + 3 + 1) + len("conv/kernel") + len("bn/gamma") + 2 * len("Edema")
    assert oversize(GOOD, Limits(result_bytes=size)) is None
    reason = f"it has {size} bytes; the limit is {size - 1}"
    assert reason in oversize(GOOD, Limits(result_bytes=size - 1))
    assert oversize(changed(body={"x": "y"}, positives=[1]), Limits()) is None  # no arrays


def test_limits_are_whole_numbers_above_0_by_their_names():
    assert limits(None) == limits({}) == Limits()
    assert limits({"site_classes": 7}) == Limits(site_classes=7)
    for value in (0, 1.5, True, "many", None):
        message = "'model_classes' must be a whole number above 0; got"
        with pytest.raises(ValueError, match=message):
            limits({"model_classes": value})
    with pytest.raises(ValueError, match=r"limits are class_name_bytes, .*; got 'classes'"):
        limits({"classes": 7})


@pytest.mark.parametrize(("kinds", "strategy"), [
    (VariableKinds(frozenset({"bn/gamma"})), "fedbn+"),
    (VariableKinds(constant=frozenset({"bn/gamma"})), "fedavg"),
], ids=["frozen", "constant"])  # fmt: skip
def test_what_stays_at_the_site_must_not_come(kinds, strategy):
    wanted = expected(kinds=kinds, strategy=strategy)
    assert fault(body(bn_gamma=None), wanted) is None
    assert "body variables 'bn/gamma' must not be sent" in fault(GOOD, wanted)
    for sent in (BODY, {}):
        reason = fault(changed(body=sent), wanted)
        assert "Does the site use the server's strategy" in reason
        assert "by an older version, make it again" in reason


def test_columns_have_the_dtype_of_the_bodys_floating_numbers_or_float32():
    count = {"normalization/count": np.zeros((), np.int64)}
    kinds = VariableKinds(constant=frozenset(count))
    assert fault(GOOD, expected({**BODY, **count}, kinds)) is None
    assert expected({}).dtype == np.float32


def test_where_heads_are_personal_no_column_may_come():
    assert fault(changed(columns={}), expected(personal_head=True)) is None
    assert "it has columns of 'Edema', but in this run" in fault(GOOD, expected(personal_head=True))


def test_a_moving_variance_may_be_zero_and_not_below():
    statistics = {"bn/moving_variance": np.float32([1, 0]), "bn/moving_mean": np.float32([0, -1])}
    wanted = expected(statistics, VariableKinds(frozenset(statistics)))
    assert fault(changed(body=statistics), wanted) is None
    below = changed(body={**statistics, "bn/moving_variance": np.float32([1, -1e-9])})
    reason = fault(below, wanted)
    assert "'bn/moving_variance' has 1 variances below 0" in reason
    assert "use strategy 'fedbn' or 'fedbn+'" in reason
    assert fault(below, expected(statistics)) is None  # by name only


def test_differences_are_added_to_the_variables_that_they_are_from():
    start = {"bn/gamma": np.float32([1, 2]), "scale": np.array(2, np.float32)}
    sent = {"bn/gamma": np.float32([5, 6]), "new": np.float32([7]), "scale": start["scale"]}
    trained = added(sent, start)
    values = {name: value.tolist() for name, value in trained.items()}
    assert values == {"bn/gamma": [6, 8], "new": [7], "scale": 4}
    kinds = {(type(value), value.dtype.name) for value in trained.values()}
    assert kinds == {(np.ndarray, "float32")}
    trained["bn/gamma"][:] = 99
    assert start["bn/gamma"].tolist() == [1, 2]


@pytest.mark.parametrize(("difference", "reason"), [
    (np.float32([0]), r"must have shape \(2,\); got \(1,\)"),  # NumPy would stretch it
    (np.zeros(2), "array of float32; got float64"),
    (None, "array of float32; got NoneType"),
    (np.float32([np.nan, 0]), "1 values that are NaN"),
    (np.full(2, np.finfo(np.float32).max), "2 values that are NaN or infinite"),
], ids=["shape", "precision", "nothing", "NaN", "overflow"])  # fmt: skip
def test_a_difference_keeps_the_fault_that_it_came_with(difference, reason):
    largest = {"bn/gamma": np.full(2, np.finfo(np.float32).max)}
    sent = added({"bn/gamma": difference}, largest)
    assert re.search(reason, fault(changed(body=sent), expected(largest)))
