"""Rule 3 of the design: what makes a contribution unfit."""

import dataclasses
import re

import numpy as np
import pytest

from surgical_aggregation.aggregation.class_names import Spellings
from surgical_aggregation.aggregation.result_checks import (
    Contribution,
    Expected,
    added,
    fault,
    oversize,
)
from surgical_aggregation.aggregation.size_limits import Limits
from surgical_aggregation.aggregation.variable_kinds import VariableKinds

BODY = {"conv/kernel": np.zeros((2, 2), np.float32), "bn/gamma": np.ones(2, np.float32)}
COLUMN = (np.zeros(3, np.float32), np.zeros(1, np.float32))
GOOD = Contribution(BODY, {"Edema": COLUMN}, samples=10, positives={"Edema": 2})
EXPECTED = Expected(BODY, 3, VariableKinds(), "fedavg")


def without(mapping, name):
    return {key: value for key, value in mapping.items() if key != name}


def changed(**changes):
    return dataclasses.replace(GOOD, **changes)


@pytest.mark.parametrize(
    "contribution",
    [
        GOOD,
        changed(positives={"Edema": 0}),
        changed(positives={"Edema": np.int32(7)}),
        changed(samples=None, positives=None),
        *(changed(samples=n) for n in (1, 0.5, 10**12, np.int64(7), np.float32(7), np.uint8(7))),
    ],
    ids=lambda one: f"{type(one.samples).__name__} samples, positives {one.positives}",
)
def test_a_good_one_passes(contribution):
    assert fault(contribution, EXPECTED) is None


def body(**variables):
    """The body with other variables; `_` stands for a slash."""
    return changed(body=BODY | {name.replace("_", "/"): v for name, v in variables.items()})


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
    "integers": (body(bn_gamma=np.ones(2, int)), "array of float32; got int64"),
    "precision": (body(bn_gamma=np.ones(2, "f2")), "array of float32; got float16"),
    "column's precision": (column(np.zeros(3), np.zeros(1)), "of Edema' .* float32; got float64"),
    "no array": (body(bn_gamma=[1, 2]), "array of float32; got list"),
    "unknown variable": (body(x=BODY["bn/gamma"]), "'x' are not among"),
    "missing variable": (changed(body=without(BODY, "bn/gamma")), "'bn/gamma' are missing"),
    "class twice": (named("Edema", "edema"), "one class spelt twice"),
    "twice but for its Unicode form": (named("E\u0301", "\u00c9"), "one class spelt twice"),
    "unprintable class": (named("Edema\0"), "printable text"),
    "class with outer spaces": (named("Edema "), "printable text"),
    "empty head": (changed(columns={}), "head is empty"),
    "too long a class name": (named("x" * 70_000), "200 bytes.* has 70000"),
    "no samples": (changed(samples=0), r"must be a number > 0 and at most 1e\+12; got 0"),
    "negative samples": (changed(samples=-1), "got -1"),
    "samples that are no number": (changed(samples="many"), "got 'many'"),
    "NaN samples": (changed(samples=float("nan")), "got nan"),
    "a bool of samples": (changed(samples=True), "got True"),
    "samples beyond what any site has": (changed(samples=10**12 + 1), "number of 40 bits"),
    "samples that no float can hold": (changed(samples=10**400), "number of 1329 bits"),
    "samples that Python does not print": (changed(samples=-(10**5000)), "number of 16610 bits"),
    "infinite samples": (changed(samples=float("inf")), "got inf"),
    "complex samples": (changed(samples=1 + 1j), "got .1.1j"),
    "a long text for samples": (changed(samples="9" * 10**6), "got '9{,40}[.]{3}9{,40}'$"),
    "an array of samples": (changed(samples=np.ones(3)), "got array"),
    "a NumPy bool of samples": (changed(samples=np.True_), "got np.True_"),
    "a NumPy NaN of samples": (changed(samples=np.float32("nan")), "got np.float32"),
    "negative positives": (changed(positives={"Edema": -1}), "positives of 'Edema'"),
    "positives that are no table": (changed(positives=[1]), "positives must be given by class"),
    "positives that no float can hold": (changed(positives={"Edema": 10**400}), "of 1329 bits"),
    "positives in halves": (changed(positives={"Edema": 1.5}), "must be a count .* got 1.5"),
    "a bool of positives": (changed(positives={"Edema": True}), "must be a count .* got True"),
    "a table of positives in rubbish": (changed(positives=[10**5000]), "16610 bits"),
    "positives of a class not reported": (changed(positives={}), "positives of 'Edema'"),
}


@pytest.mark.parametrize(("contribution", "reason"), BAD.values(), ids=BAD.keys())
def test_refuses(contribution, reason):
    assert re.search(reason, fault(contribution, EXPECTED))


class TestKnownClasses:
    """One class has one spelling over all sites and rounds."""

    def fault(self, *names, known=("Edema", "Mass"), **limits):
        facts = {"known": Spellings(known), "limits": Limits(**limits)}
        expected = Expected(BODY, 3, VariableKinds(), "fedavg", **facts)
        return fault(changed(columns=dict.fromkeys(names, COLUMN), positives=None), expected)

    @pytest.mark.parametrize("name", ["edema", "EDEMA", "\uff25dema"])
    def test_another_spelling_is_refused_with_the_one_that_is_known(self, name):
        reason = self.fault("Hernia", name)
        assert reason.startswith(f"class {name!r} is known as 'Edema' in this run")
        assert "have the site spell it so" in reason

    def test_a_model_that_has_both_spellings_takes_both(self):
        assert self.fault("edema", known=("Edema", "edema")) is None
        assert "known as 'Edema'" in self.fault("EDEMA", known=("Edema", "edema"))

    def test_new_classes_may_fill_the_model_up_to_its_limit(self):
        assert self.fault("Edema") is self.fault("Edema", model_classes=1) is None
        assert self.fault("Edema", "Hernia", model_classes=3) is None
        reason = self.fault("Edema", "Hernia", "Nodule", model_classes=3)
        assert "its 2 new classes beside the 2 that there are" in reason
        assert "than the 3 that the global model may have" in reason


class TestOversize:
    def test_a_site_has_so_many_classes_at_most_in_columns_and_positives(self):
        many = changed(columns={f"class {i}": COLUMN for i in range(1001)})
        said = "it has 1001 classes, and a site may have 1000"
        assert said in oversize(many, Limits())
        assert oversize(many, Limits(site_classes=1001)) is None
        assert said in oversize(changed(positives={str(i): 1 for i in range(1001)}), Limits())

    def test_bytes_are_those_of_the_variables_and_of_their_names(self):
        size = 4 * (4 + 2 + 3 + 1) + len("conv/kernel") + len("bn/gamma") + 2 * len("Edema")
        assert oversize(GOOD, Limits(result_bytes=size)) is None
        said = f"it has {size} bytes, and a result may have {size - 1}"
        assert said in oversize(GOOD, Limits(result_bytes=size - 1))
        assert oversize(changed(body={"x": "y"}, positives=[1]), Limits()) is None  # no arrays


@pytest.mark.parametrize(
    ("kinds", "strategy"),
    [
        (VariableKinds(frozenset({"bn/gamma"})), "fedbn+"),
        (VariableKinds(constant=frozenset({"bn/gamma"})), "fedavg"),
    ],
    ids=["frozen", "constant"],
)
def test_what_stays_at_the_site_must_not_come(kinds, strategy):
    expected = Expected(BODY, 3, kinds, strategy)
    assert fault(changed(body=without(BODY, "bn/gamma")), expected) is None
    assert "'bn/gamma' are not among" in fault(GOOD, expected)
    for sent in (BODY, {}):
        reason = fault(changed(body=sent), expected)
        assert "Has the site the strategy of the server" in reason
        assert "make it anew (`surgagg model init`)" in reason


def test_columns_have_the_dtype_of_the_bodys_floating_numbers_or_float32():
    count = {"normalization/count": np.zeros((), np.int64)}
    kinds = VariableKinds(constant=frozenset(count))
    assert fault(GOOD, Expected({**BODY, **count}, 3, kinds, "fedavg")) is None
    assert Expected({}, 3, VariableKinds(), "fedavg").dtype == np.float32


def test_a_variable_without_a_dimension_may_be_sent():
    body = {**BODY, "scale/weight": np.array(2, np.float32)}
    expected = Expected(body, 3, VariableKinds(), "fedavg")
    assert fault(changed(body=body), expected) is None
    assert fault(changed(body=added(body, body)), expected) is None


def test_where_heads_are_personal_no_column_may_come():
    expected = Expected(BODY, 3, VariableKinds(), "fedavg", personal_head=True)
    assert fault(changed(columns={}), expected) is None
    assert "columns of 'Edema' came" in fault(GOOD, expected)


STATISTICS = {"bn/moving_variance": np.float32([1, 0]), "bn/moving_mean": np.float32([0, -1])}


def test_a_moving_variance_may_be_zero_and_not_below():
    expected = Expected(STATISTICS, 3, VariableKinds(frozenset(STATISTICS)), "fedavg")
    assert fault(changed(body=STATISTICS), expected) is None
    below = changed(body={**STATISTICS, "bn/moving_variance": np.float32([1, -1e-9])})
    reason = fault(below, expected)
    assert "'bn/moving_variance' has 1 variances below 0" in reason
    assert "use strategy 'fedbn' or 'fedbn+'" in reason
    assert fault(below, Expected(STATISTICS, 3, VariableKinds(), "fedavg")) is None  # by name only


class TestAdded:
    """Differences become what was trained, or keep the fault they came with."""

    start = {"bn/gamma": np.float32([1, 2])}  # noqa: RUF012

    def test_to_the_variables_they_are_differences_from(self):
        trained = added({"bn/gamma": np.float32([5, 6]), "new": np.float32([7])}, self.start)
        assert {name: value.tolist() for name, value in trained.items()} == {
            "bn/gamma": [6, 8], "new": [7],
        }  # fmt: skip
        assert trained["bn/gamma"].dtype == np.float32
        trained["bn/gamma"][:] = 99
        assert self.start["bn/gamma"].tolist() == [1, 2]

    @pytest.mark.parametrize(
        ("difference", "reason"),
        [
            (np.float32([0]), r"must have shape \(2,\); got \(1,\)"),  # NumPy would stretch it
            (np.zeros(2), "array of float32; got float64"),
            ([0, 0], "array of float32; got list"),
            (None, "array of float32; got NoneType"),
            (np.float32([np.nan, 0]), "1 values that are NaN"),
            (np.full(2, np.finfo(np.float32).max), "2 values that are NaN or infinite"),
        ],
        ids=["shape", "precision", "list", "nothing", "NaN", "overflow"],
    )
    def test_what_does_not_fit_is_named(self, difference, reason):
        largest = {"bn/gamma": np.full(2, np.finfo(np.float32).max)}
        sent = added({"bn/gamma": difference}, largest)
        expected = Expected(largest, 2, VariableKinds(), "fedavg")
        assert re.search(reason, fault(Contribution(sent, {"Edema": COLUMN}), expected))
