import pytest

from cxr_studies.baseline import baseline_run
from cxr_studies.plan import run_settings
from cxr_studies.plan.row import Row
from cxr_studies.plan.study_file import Scenario
from cxr_study.common.errors import InputError
from cxr_study.jobs.job import Job
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
    ({"strategy": "fedavg"}, "'strategy' is the study's, the same in all its runs; leave it out"),
])  # fmt: skip
def test_unusable_settings_and_the_studys_own_are_refused(check, settings, message):
    with pytest.raises(InputError, match=rf"small\.yaml: key 'settings': {message}"):
        check(settings)
    check({"server_momentum": 0.5, "learning_rate": 1})  # only some jobs have it


@pytest.mark.parametrize(("settings", "reported"), [
    ({"num_round": 2}, "scenario 'a', key 'settings': .*'num_round'"),
    ({"image_size": 64}, "scenario 'a', key 'settings': 'image_size' is the study's"),
])  # fmt: skip
def test_unusable_settings_of_a_scenario_are_refused(small_data, settings, reported):
    scenario = Scenario(name="a", sites=["nih", "chexpert"], settings=settings)
    with pytest.raises(InputError, match=reported):
        run_settings.check(small_data.data, [scenario])


@pytest.mark.parametrize(("row", "settings", "reported"), [
    (Row("surgical", "fedbn+ a"), {"refit_model": "first"}, "no value 'first'; it must be one of"),
    (Row("surgical", "fedavg a"), {"pseudo_labels": "soft"}, "no setting 'pseudo_labels'"),
    (Row("individual", "fedavg a"), {"server_momentum": 0.5}, "no setting 'server_momentum'"),
    (Row("surgical", "fedavg a"), {"image_size": 32}, "'image_size' is the study's"),
])  # fmt: skip
def test_unusable_settings_of_a_variant_are_refused(small_data, row, settings, reported):
    with pytest.raises(InputError, match=rf"variant 'a' of method '{row.method}': .*{reported}"):
        run_settings.check(small_data.data, rows={row: settings})
    run_settings.check(small_data.data, rows={row: {"learning_rate": 1e-4}})


@pytest.mark.parametrize(("per_site", "reported"), [
    ({"chexpart": {"learning_rate": 1}}, "key 'chexpart': .*not in the job; nearest .*chexpert"),
    ({"nih": {"learning_rate": "5e-5"}}, "key 'nih': .*'learning_rate' needs a number"),
    ({"nih": {"num_rounds": 3}}, "key 'nih': a site of .* no setting 'num_rounds'"),
    ({"nih": {"image_size": 32}}, "key 'nih': 'image_size' is the study's"),
    ({"nih": {"seed": 32}}, "key 'nih': 'seed' is the study's"),
])  # fmt: skip
def test_settings_for_one_site_are_refused_by_file_and_key(small_data, per_site, reported):
    data = small_data.data.model_copy(update={"per_site": per_site})
    with pytest.raises(InputError, match=rf"small\.yaml: key 'per_site', {reported}"):
        run_settings.check_per_site(data, ("nih", "chexpert"))
    data = data.model_copy(update={"per_site": {"nih": {"learning_rate": 1, "epochs": 2}}})
    run_settings.check_per_site(data, ("nih", "chexpert"))


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


@pytest.mark.parametrize(("method", "sites", "preset", "own"), [
    ("individual", ("chexpert",), 5e-5, 0.25), ("individual", ("nih",), 1e-5, 0.5),
    ("individual", ("chexpert", "nih"), 1e-5, 0.5), ("centralised", ("nih", "chexpert"), 1e-5, 0.5),
    ("complete", ("chexpert",), 1e-5, 0.5),
])  # fmt: skip
def test_settings_for_one_site_apply_where_it_trains_alone(method, sites, preset, own):
    """Those of a preset, which any that is set wins over, and those set for it, which win."""
    assert alone(method, sites=sites, preset="paper-fedfbn")["learning_rate"] == preset
    row, given = Row(method, "fedavg"), {"learning_rate": 0.5}
    chexpert = {"learning_rate": 0.25, "report_counts": True}
    for per_site, rate in (({}, 0.5), ({"chexpert": chexpert}, own)):
        found = run_settings.all_settings(row, sites, UNION, "paper-fedfbn", given, per_site)
        assert found["learning_rate"] == rate


def test_settings_for_one_site_of_a_federation_win_over_the_presets_and_all_others():
    own = {"chexpert": {"learning_rate": 0.25}}
    row, given = Row("surgical", "fedbn+"), {"learning_rate": 0.5}
    job = run_settings.job_of(row, ("nih", "chexpert"), UNION, "paper-fedfbn", given, own)
    assert (job.at("nih").learning_rate, job.at("chexpert").learning_rate) == (0.5, 0.25)


def job_of(row, settings=None, sites=SITES, preset=None):
    return run_settings.job_of(row, sites, UNION, preset, settings or {})


@pytest.mark.parametrize("method", ("surgical", "personalised", "vanilla", "partial_loss"))
def test_it_is_the_methods_job_with_the_rows_strategy_for_all_sites(method):
    job, own = job_of(Row(method, "fedavg"), sites=("a", "b", "c")), Job.of(method)
    changed = {"strategy": "fedavg", "threads": 1, "min_clients": 3}
    if "union" in own.settings:
        changed["union"] = "Edema,Fracture,Mass"
    assert job.settings == own.settings | changed
    assert job.sites == ("a", "b", "c")


@pytest.mark.parametrize("strategy", ["fedbn+", "fedbn+ samples"])
def test_what_is_set_wins_over_the_preset_and_all_but_the_rows_strategy(strategy):
    given = {"threads": 3, "batch_size": 8, "seed": 7, "head_weighting": "samples"}
    row = Row("surgical", strategy)
    job = job_of(row, given | {"strategy": "fedavg"}, preset="paper-fedfbn")
    own = {**given, "strategy": "fedbn+", "learning_rate": 1e-5}
    assert job.settings == {**job.settings, **own}
    assert job.at("chexpert").learning_rate == 5e-5
