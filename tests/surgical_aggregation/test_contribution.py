"""Rule 3 of the design: what makes a contribution unfit."""

import dataclasses
import re

import numpy as np
import pytest

from surgical_aggregation.contribution import Contribution, Expected, fault

BODY = {"conv/kernel": np.zeros((2, 2), np.float32), "bn/gamma": np.ones(2, np.float32)}
COLUMN = (np.zeros(3, np.float32), np.zeros(1, np.float32))
GOOD = Contribution(BODY, {"Edema": COLUMN}, samples=10, positives={"Edema": 2})
EXPECTED = Expected(BODY, features=3)


def without(mapping, name):
    return {key: value for key, value in mapping.items() if key != name}


def changed(**changes):
    return dataclasses.replace(GOOD, **changes)


def test_a_good_one_passes():
    assert fault(GOOD, EXPECTED) is None


def test_a_class_may_have_no_positives():
    assert fault(changed(positives={"Edema": 0}), EXPECTED) is None


def test_counts_need_not_be_reported():
    assert fault(changed(samples=None, positives=None), EXPECTED) is None


NAN = np.float32([[0, np.nan], [0, 0]])
INF = np.float32([np.inf, 0, 0])

BAD = {
    "NaN in the body": (changed(body={**BODY, "conv/kernel": NAN}), "'conv/kernel' has 1 values"),
    "infinity in a column": (
        changed(columns={"Edema": (INF, COLUMN[1])}),
        "kernel of Edema.* has 1",
    ),
    "wrong body shape": (
        changed(body={**BODY, "bn/gamma": np.ones(3, np.float32)}),
        r"'bn/gamma' must have shape \(2,\); got \(3,\)",
    ),
    "wrong column length": (
        changed(columns={"Edema": (np.zeros(4, np.float32), COLUMN[1])}),
        r"kernel of Edema' must have shape \(3,\); got \(4,\)",
    ),
    "wrong bias shape": (
        changed(columns={"Edema": (COLUMN[0], np.zeros(2, np.float32))}),
        "bias of Edema",
    ),
    "integers": (
        changed(body={**BODY, "bn/gamma": np.ones(2, int)}),
        "array of float32; got int64",
    ),
    "another precision": (
        changed(body={**BODY, "bn/gamma": np.ones(2, np.float16)}),
        "array of float32; got float16",
    ),
    "a column of another precision": (
        changed(columns={"Edema": (np.zeros(3), np.zeros(1))}),
        "kernel of Edema' must be an array of float32; got float64",
    ),
    "no array": (changed(body={**BODY, "bn/gamma": [1, 2]}), "array of float32; got list"),
    "unknown body variable": (changed(body={**BODY, "x": BODY["bn/gamma"]}), "'x' are not among"),
    "missing body variable": (changed(body=without(BODY, "bn/gamma")), "'bn/gamma' are missing"),
    "duplicate class": (
        changed(columns={"Edema": COLUMN, "edema": COLUMN}),
        "one class spelt twice",
    ),
    "duplicate class in another Unicode form": (
        changed(columns={"E\u0301": COLUMN, "\u00c9": COLUMN}, positives=None),
        "one class spelt twice",
    ),
    "unprintable class": (changed(columns={"Edema\0": COLUMN}), "printable text"),
    "class with outer spaces": (changed(columns={"Edema ": COLUMN}), "printable text"),
    "empty head": (changed(columns={}), "head is empty"),
    "no samples": (changed(samples=0), "number of samples must be a number > 0; got 0"),
    "negative samples": (changed(samples=-1), "got -1"),
    "samples that are no number": (changed(samples="many"), "got 'many'"),
    "NaN samples": (changed(samples=float("nan")), "got nan"),
    "negative positives": (changed(positives={"Edema": -1}), "positives of 'Edema'"),
    "positives that are no table": (changed(positives=[1]), "positives must be given by class"),
    "samples beyond any number": (changed(samples=True), "got True"),
    "positives of a class not reported": (changed(positives={}), "positives of 'Edema'"),
}


@pytest.mark.parametrize(("contribution", "reason"), BAD.values(), ids=BAD.keys())
def test_refuses(contribution, reason):
    assert re.search(reason, fault(contribution, EXPECTED))


class TestUnsent:
    expected = Expected(BODY, features=3, unsent="/gamma$")

    def test_frozen_variables_need_not_come(self):
        assert fault(changed(body=without(BODY, "bn/gamma")), self.expected) is None

    def test_and_must_not_come(self):
        assert "'bn/gamma' are not among" in fault(GOOD, self.expected)
