"""Exactness: rules 1 and 2 of the design, against FLARE's stock aggregator and a naive loop."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nvflare.app_common.aggregators.weighted_aggregation_helper import WeightedAggregationHelper

from profiles import examples
from surgical_aggregation.aggregation.averaging import mean
from surgical_aggregation.aggregation.head import (
    HeadError,
    LabelledHead,
    by_holders,
    columns,
    from_columns,
    merge,
    merge_columns,
    select,
)
from surgical_aggregation.wire import variables as wire


def head(**values):
    """A two-feature head with one named column per keyword, e.g. head(Edema=1)."""
    array = np.array(list(values.values()), dtype=np.float32)
    return LabelledHead(tuple(values), np.stack([array, 10 * array]), -array)


@st.composite
def heads_and_weights(draw, same_classes=False):
    """K in 1..10 heads over random class sets in random order, with random weights per class."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    union = [f"class/{i} é" for i in range(draw(st.integers(1, 14)))]
    features = draw(st.integers(1, 5))
    heads, weights = [], []
    for _ in range(draw(st.integers(1, 10))):
        size = len(union) if same_classes else rng.integers(1, len(union) + 1)
        held = tuple(rng.permutation(union)[:size].tolist())
        kernel = rng.normal(size=(features, size)).astype(np.float32)
        heads.append(LabelledHead(held, kernel, rng.normal(size=size).astype(np.float32)))
        weights.append({name: float(rng.integers(1, 1000)) for name in held})
    return heads, weights


def naive_merge(heads, weights):
    """Eq. 2 spelt out entry by entry in Python floats: class -> (kernel column, bias)."""
    result = {}
    for name in {c for h in heads for c in h.classes}:
        holders = [(h, w[name]) for h, w in zip(heads, weights, strict=True) if name in h.classes]
        total = sum(weight for _, weight in holders)
        kernel = []
        for feature in range(heads[0].kernel.shape[0]):
            terms = [float(h.kernel[feature, h.classes.index(name)]) * a for h, a in holders]
            kernel.append(sum(terms) / total)
        bias = sum(float(h.bias[h.classes.index(name)]) * a for h, a in holders) / total
        result[name] = (kernel, bias)
    return result


class TestLabelledHead:
    def test_needs_one_kernel_column_per_class(self):
        with pytest.raises(HeadError, match=r"kernel \(features, 2\).*got \(3, 1\)"):
            LabelledHead(("A", "B"), np.zeros((3, 1)), np.zeros(2))

    def test_refuses_a_class_twice(self):
        with pytest.raises(HeadError, match="'A'"):
            LabelledHead(("A", "A"), np.zeros((3, 2)), np.zeros(2))

    def test_columns_and_back_is_the_same_head(self):
        original = head(Edema=1, Mass=5)
        again = from_columns(columns(original), features=2)
        assert again.classes == original.classes
        np.testing.assert_array_equal(again.kernel, original.kernel)
        np.testing.assert_array_equal(again.bias, original.bias)

    def test_no_columns_make_an_empty_head(self):
        assert from_columns({}, features=7).kernel.shape == (7, 0)


class TestSelect:
    def test_takes_columns_by_name_in_the_order_asked(self):
        chosen = select(head(Edema=1, Mass=5, Hernia=7), ["Hernia", "Edema"])
        np.testing.assert_array_equal(chosen.kernel, [[7, 1], [70, 10]])
        np.testing.assert_array_equal(chosen.bias, [-7, -1])

    def test_gives_copies(self):
        original = head(Edema=1)
        select(original, ["Edema"]).kernel[:] = 99
        assert original.kernel[0, 0] == 1

    def test_names_the_class_that_is_not_there(self):
        with pytest.raises(HeadError, match=r"no column for \['Effusion'\]; it has \['Edema'\]"):
            select(head(Edema=1), ["Effusion"])


class TestByHolders:
    def test_classes_with_the_same_holders_come_together_and_not_too_many(self):
        held = [dict.fromkeys("cab"), dict.fromkeys("dbca")]
        assert list(by_holders(held, at_most=2)) == [
            ((0, 1), ["a", "b"]), ((0, 1), ["c"]), ((1,), ["d"]),
        ]  # fmt: skip

    def test_of_nobody_there_are_none(self):
        assert list(by_holders([{}, {}])) == list(by_holders([])) == []


class TestMerge:
    def test_shared_class_is_the_mean_wherever_its_column_stands(self):
        merged = merge([head(Edema=1, Mass=5), head(Hernia=7, Edema=3)])
        assert merged.classes == ("Edema", "Hernia", "Mass")
        np.testing.assert_array_equal(select(merged, ["Edema"]).kernel, [[2], [20]])
        np.testing.assert_array_equal(merged.bias, [-2, -7, -5])

    def test_weights_are_per_class(self):
        merged = merge(
            [head(Edema=0, Mass=0), head(Edema=4, Mass=4)],
            [{"Edema": 1, "Mass": 3}, {"Edema": 3, "Mass": 1}],
        )
        np.testing.assert_array_equal(merged.kernel[0], [3, 1])

    def test_a_column_keeps_no_other_in_memory(self):
        held = [columns(head(Edema=1, Mass=5)), columns(head(Edema=3))]
        merged = merge_columns(held, [dict.fromkeys(c, 1.0) for c in held])
        assert all(part.base is None for column in merged.values() for part in column)

    @given(heads_and_weights())
    def test_class_of_one_head_passes_bit_for_bit(self, drawn):
        heads, weights = drawn
        merged = merge(heads, weights)
        for name in merged.classes:
            holders = [h for h in heads if name in h.classes]
            if len(holders) == 1:
                ours, theirs = select(merged, [name]), select(holders[0], [name])
                assert ours.kernel.tobytes() == theirs.kernel.tobytes()
                assert ours.bias.tobytes() == theirs.bias.tobytes()

    @given(heads_and_weights(same_classes=True))
    def test_same_classes_everywhere_is_fedavg_exactly(self, drawn):
        heads, weights = drawn
        shares = [next(iter(w.values())) for w in weights]
        order = sorted(heads[0].classes)
        aligned = [select(h, order) for h in heads]
        merged = merge(heads, [dict.fromkeys(order, share) for share in shares])
        np.testing.assert_array_equal(merged.kernel, mean([h.kernel for h in aligned], shares))
        np.testing.assert_array_equal(merged.bias, mean([h.bias for h in aligned], shares))

    @given(heads_and_weights())
    def test_equals_a_naive_loop(self, drawn):
        heads, weights = drawn
        merged = merge(heads, weights)
        expected = naive_merge(heads, weights)
        assert set(merged.classes) == set(expected)
        for column, name in enumerate(merged.classes):
            kernel, bias = expected[name]
            np.testing.assert_allclose(merged.kernel[:, column], kernel, rtol=1e-6, atol=1e-7)
            np.testing.assert_allclose(merged.bias[column], bias, rtol=1e-6, atol=1e-7)

    @given(heads_and_weights())
    def test_equals_flares_stock_aggregation_of_per_class_variables(self, drawn):
        heads, _ = drawn
        merged = merge(heads, [dict.fromkeys(h.classes, 3.0) for h in heads])
        stock = WeightedAggregationHelper()
        for number, part in enumerate(heads):
            stock.add(wire.join({}, columns(part)), 3.0, f"site-{number}", 0)
        body, expected = wire.split(stock.get_result())
        assert not body
        assert set(merged.classes) == set(expected)
        for name, (kernel, bias) in columns(merged).items():
            np.testing.assert_allclose(kernel, expected[name][0], rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(bias, expected[name][1], rtol=1e-5, atol=1e-6)

    @settings(max_examples=examples(30))
    @given(heads_and_weights())
    def test_same_order_gives_the_same_bits(self, drawn):
        heads, weights = drawn
        first, second = merge(heads, weights), merge(heads, weights)
        assert first.kernel.tobytes() == second.kernel.tobytes()

    def test_order_of_heads_does_not_matter_beyond_rounding(self):
        parts = [head(Edema=0.1, Mass=5), head(Edema=0.7), head(Edema=0.3, Mass=1)]
        results = [merge(list(order)).kernel for order in itertools.permutations(parts)]
        for result in results[1:]:
            np.testing.assert_allclose(result, results[0], rtol=1e-6)
