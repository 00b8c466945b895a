import pytest

from cxr_studies.baseline import baseline_run
from cxr_studies.plan import run_settings
from cxr_studies.plan.data_file import DataFileError
from cxr_studies.plan.row import Row
from cxr_studies.plan.study_file import Scenario, StudyFileError
from cxr_study.jobs.presets import JobError
from cxr_study.runs.run_request import InitialBodyError


@pytest.fixture
def check(small_data):
    """Check the small data with some more settings."""

    def check(settings):
        own = {**small_data.data.settings, **settings}
        run_settings.check(small_data.data.model_copy(update={"settings": own}))

    return check


@pytest.mark.parametrize(("settings", "message"), [
    ({"learning_rat": 1}, ".*'learning_rat'"),
    ({"batch_size": 0}, ".*'batch_size' needs a whole number, 1"),
    ({"strategy": "fedavg"}, "a study sets 'strategy' itself; leave it out"),
    ({"seed": 3}, "a study sets 'seed' itself"),
    ({"tracking": "tensorboard"}, "a study sets 'tracking' itself"),
])  # fmt: skip
def test_unusable_settings_and_the_studys_own_are_refused(check, settings, message):
    with pytest.raises(DataFileError, match=rf"small\.yaml: key 'settings': {message}"):
        check(settings)
    check({"server_momentum": 0.5, "learning_rate": 1})  # only some jobs have it


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"num_round": 2}, "scenario 'a', key 'settings': .*'num_round'"),
        ({"seed": 2}, "scenario 'a', key 'settings': 'seed' is the same in all scenarios"),
        ({"image_size": 64}, "'image_size' is the same in all scenarios"),
    ],
)
def test_unusable_settings_of_a_scenario_are_refused(small_data, settings, told):
    scenario = Scenario(name="a", sites=["nih", "chexpert"], settings=settings)
    with pytest.raises(StudyFileError, match=told):
        run_settings.check(small_data.data, [scenario])


@pytest.mark.parametrize(("row", "settings", "told"), [
    (Row("surgical", "fedbn+ a"), {"refit_lest": True}, "no setting 'refit_lest'"),
    (Row("surgical", "fedbn+ a"), {"freeze_statistics_at": 2}, "'fedavg' alone trains"),
    (Row("surgical", "fedavg a"), {"pseudo_labels": "soft"}, "no setting 'pseudo_labels'"),
    (Row("individual", "fedavg a"), {"refit_model": "best"}, "no setting 'refit_model'"),
    (Row("surgical", "fedavg a"), {"seed": 2}, "'seed' is the study's to set"),
    (Row("surgical", "fedavg a"), {"image_size": 32}, "'image_size' is the study's to set"),
])  # fmt: skip
def test_unusable_settings_of_a_variant_are_refused(small_data, row, settings, told):
    with pytest.raises(StudyFileError, match=rf"variant 'a' of method '{row.method}': .*{told}"):
        run_settings.check(small_data.data, rows={row: settings})
    run_settings.check(small_data.data, rows={row: {"learning_rate": 1e-4}})


def test_an_initial_body_of_another_network_is_refused(check):
    with pytest.raises(InitialBodyError, match="densenet121"):
        check({"backbone": "densenet121"})


def test_the_network_is_the_jobs_with_the_preset_and_the_settings_on_top(small_data):
    data = small_data.data.model_copy(update={"preset": "paper", "settings": {"image_size": 96}})
    assert run_settings.network(data) == {"backbone": "densenet121", "image_size": 96, "hidden": 0}


SITES, UNION = ("nih", "chexpert"), ("Edema", "Fracture", "Mass")
RECIPES = {name: name for name in baseline_run.METHODS} | {"complete": "centralised"}


def alone(method, scenarios=None, sites=SITES, preset=None):
    return run_settings.all_settings(Row(method, "fedavg"), sites, UNION, preset, scenarios or {})


@pytest.mark.parametrize(("method", "recipe"), RECIPES.items())
def test_without_a_federation_they_are_those_of_the_methods_recipe(method, recipe):
    own = {"strategy": "fedavg", "threads": 1}
    if method != "individual":
        own["union"] = "Edema,Fracture,Mass"
    assert alone(method) == baseline_run.all_settings(recipe, {}) | own
    # What is set wins, and what only a federation has, or is the row's, is left out.
    other = {"min_clients": 2, "head_weighting": "samples", "send": "full", "strategy": "fedbn+"}
    found = alone(method, {"epochs": 3, "seed": 7, "threads": 2, **other})
    assert found == alone(method) | {"epochs": 3, "seed": 7, "threads": 2}


def test_of_a_federation_they_are_the_jobs_with_the_number_of_its_sites():
    row = Row("surgical", "fedbn+")
    found = run_settings.all_settings(row, ("a", "b"), (), None, {"epochs": 7})
    assert (found["epochs"], found["min_clients"]) == (7, 2)


def test_a_preset_counts_where_nothing_is_set():
    found = alone("complete", {"batch_size": 8}, preset="paper")
    wanted = {"backbone": "densenet121", "learning_rate": 5e-5, "num_rounds": 150}
    assert found == {**found, **wanted, "batch_size": 8, "strategy": "fedavg"}


def test_settings_of_a_preset_for_one_site_apply_where_it_trains_alone():
    rates = {
        (method, sites): alone(method, sites=sites, preset="paper-fedfbn")["learning_rate"]
        for method, sites in (
            ("individual", ("chexpert",)),
            ("individual", ("nih",)),
            ("individual", SITES[::-1]),
            ("centralised", SITES),
            ("complete", ("chexpert",)),
        )
    }
    assert list(rates.values()) == [5e-5, 1e-5, 1e-5, 1e-5, 1e-5]
    found = alone("individual", {"learning_rate": 0.5}, ("chexpert",), "paper-fedfbn")
    assert found["learning_rate"] == 0.5


def test_a_value_of_another_kind_and_an_unknown_preset_are_refused():
    with pytest.raises(JobError, match="'epochs' needs a whole number"):
        alone("individual", {"epochs": "many"})
    with pytest.raises(JobError, match="no preset 'papr'; nearest known: paper"):
        alone("individual", preset="papr")
