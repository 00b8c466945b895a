import keras
import numpy as np
import pytest

from surgical_aggregation.network import all_layers, check_body, head_layer
from surgical_aggregation.site import SiteError
from tiny_site import FEATURES, tiny_model


class TestHeadLayer:
    def test_is_the_last_layer(self):
        model = tiny_model(2)
        assert head_layer(model, ("Edema", "Mass")) is model.layers[-1]

    def test_needs_a_unit_per_class(self):
        with pytest.raises(SiteError, match="each of 3 classes; it has 2"):
            head_layer(tiny_model(2), ("A", "B", "C"))

    def test_needs_to_be_called_head(self):
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, name="predictions")])
        with pytest.raises(SiteError, match="called 'head'; got Dense called 'predictions'"):
            head_layer(model, ("A",))

    def test_needs_to_be_dense(self):
        model = keras.Sequential([keras.Input((3,)), keras.layers.Dropout(0.1, name="head")])
        with pytest.raises(SiteError, match="got Dropout called 'head'"):
            head_layer(model, ("A",))


def test_layers_inside_of_layers_are_among_all():
    inner = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, name="deep")])
    outer = keras.Sequential([keras.Input((3,)), inner])
    assert "deep" in [layer.name for layer in all_layers(outer)]


class TestCheckBody:
    def own(self):
        return {v.path: v for v in tiny_model(1).variables if not v.path.startswith("head/")}

    def test_the_networks_own_passes(self):
        own = self.own()
        check_body({path: v.numpy() for path, v in own.items()}, own)

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("bn/gamma", None),
            ("conv/kernel", np.zeros(FEATURES)),
            ("dense/kernel", np.zeros((5, FEATURES))),
        ],
    )
    def test_a_variable_too_few_too_many_or_of_another_shape_is_named(self, path, value):
        own = self.own()
        body = {**{p: v.numpy() for p, v in own.items()}, path: value}
        if value is None:
            del body[path]
        with pytest.raises(SiteError, match=rf"differ in 1 variables, e\.g\. \['{path}'\]"):
            check_body(body, own)
