import numpy as np
import pytest

from flare import Engine, column, context, lists
from surgical_aggregation.aggregation.one_sided import LABELLED, POSITIVE
from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.server.models.candidates import CandidateLocator, average_of, refit_of
from surgical_aggregation.server.models.global_model import GlobalModel
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import AVERAGE, CANDIDATE, REFIT

MANIFEST = {"round": 7, "best": {"round": 3}, "validation": {"round": 7}, "classes": {"Mass": {}}}
VARIABLES = wire.join({"conv/kernel": np.float32([4])}, {"Mass": column(1), "Edema": column(2)})
AVERAGES = {"average/conv/kernel": np.float32([3]), "average/head/Mass/bias": np.float32([5])}
MODEL = GlobalModel(VARIABLES, MANIFEST, {"velocity/conv/kernel": np.float32([9]), **AVERAGES})


def test_the_average_is_of_the_round_it_ends_with_and_has_nothing_that_was_measured_of_it():
    found = average_of(MODEL)
    assert lists(found.variables) == lists(VARIABLES) | {"conv/kernel": [3], "head/Mass/bias": [5]}
    assert found.manifest == {"round": 7, "classes": {"Mass": {}}, CANDIDATE: AVERAGE}
    assert found.moments == {}


def test_fitted_columns_replace_those_of_the_model_and_add_no_class():
    found = refit_of(MODEL, wire.join({}, {"Mass": column(8), "Hernia": column(9)}), {})
    fitted = {"head/Mass/kernel": [8, 8], "head/Mass/bias": [8]}
    assert lists(found.variables) == lists(VARIABLES) | fitted
    assert found.manifest[CANDIDATE] == REFIT and found.manifest["round"] == 7


def test_a_fitted_column_names_the_sites_that_fitted_it_and_no_further_round():
    def facts(*sites, **more):
        return {"sites": [*sites], "last_round": 2, "rounds": [[0, 2, ["a"]]], **more}

    before = {"Mass": facts("a", lacking={"a": POSITIVE}), "Edema": facts("a"), "Hernia": {}}
    model = GlobalModel(VARIABLES, {**MANIFEST, "classes": before})
    sent = {
        "a": SiteResult({}, {"Mass": column(8)}, lacking={"Mass": POSITIVE}),
        "b": SiteResult({}, {"Mass": column(6), "Nodule": column(1)}, lacking={"Mass": POSITIVE}),
        "c": SiteResult({}, {"Edema": column(7), "Mass": column(7)}, lacking={"Mass": LABELLED}),
    }
    found = refit_of(model, wire.join({}, {"Mass": column(7)}), sent).manifest["classes"]
    lacking = {"a": POSITIVE, "b": POSITIVE, "c": LABELLED}
    assert found["Mass"] == facts("a", "b", lacking=lacking)
    assert found["Edema"] == facts("a", "c") and found.keys() == before.keys()


class TestLocator:
    def test_the_average_is_made_when_it_is_asked_for_and_becomes_the_model_in_memory(self):
        fl_ctx = context(model=MODEL, engine=Engine())
        found = [CandidateLocator(made).get_model_names(fl_ctx) for made in (REFIT, AVERAGE)]
        assert found == [[], [AVERAGE]]
        assert GlobalModel.current(fl_ctx).manifest[CANDIDATE] == AVERAGE
        dxo = CandidateLocator(AVERAGE).locate_model(AVERAGE, fl_ctx)
        assert dxo.data["conv/kernel"].tolist() == [3] and dxo.meta == {}

    def test_without_an_average_or_a_refit_there_is_none(self):
        fl_ctx = context(model=GlobalModel(VARIABLES, MANIFEST), engine=Engine())
        for model in (AVERAGE, REFIT):
            assert CandidateLocator(model).get_model_names(fl_ctx) == []
        assert CANDIDATE not in GlobalModel.current(fl_ctx).manifest
        average_of(MODEL).set_current(fl_ctx)  # which was not refitted afterwards
        assert CandidateLocator(REFIT).get_model_names(fl_ctx) == []

    def test_another_kind_of_model_is_refused(self):
        with pytest.raises(ValueError, match=r"one of \('average', 'refit'\); got 'best'"):
            CandidateLocator("best")
