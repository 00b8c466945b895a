import dataclasses

import pytest

import study_runs
from cxr_study.studies.plan.planned_run import key_of

WHAT = {"sites": 2, "classes": ["Mass", "Ödem"]}


class TestKey:
    def test_what_a_run_is_makes_its_key(self):
        changes = ({}, {"method": "vanilla"}, {"seed": 1}, {"num_rounds": 9})
        runs = [study_runs.run(**changed) for changed in changes]
        assert len({run.key for run in runs}) == len(runs)

    def test_where_its_files_are_and_what_it_is_for_do_not(self):
        run = study_runs.run()
        moved = dataclasses.replace(run, scenario="four sites", where={"sites": []})
        assert moved.key == run.key


@pytest.mark.parametrize(
    ("method", "processes"), [("surgical", 4), ("vanilla", 4), ("complete", 1)]
)
def test_every_site_of_a_federation_is_a_process_and_without_one_there_is_one(method, processes):
    sites = dict.fromkeys("abcd", ("Mass",))
    assert study_runs.run(method, sites=sites).processes == processes


def test_it_knows_how_many_rounds_it_makes():
    assert study_runs.run(num_rounds=150).rounds == 150


def test_its_name_tells_scenario_row_and_seed():
    assert study_runs.run(seed=3, scenario="4").name == "4, surgical-fedbn+, seed 3"


class TestKeyOf:
    def test_the_same_content_has_the_same_key_whatever_the_order_of_its_names(self):
        turned = dict(reversed(WHAT.items()))
        assert key_of(turned) == key_of(WHAT) == key_of({**WHAT, "classes": ("Mass", "Ödem")})

    @pytest.mark.parametrize("change", [{"sites": 3}, {"classes": ["Ödem", "Mass"]}, {"seed": 0}])
    def test_other_content_has_another(self, change):
        assert key_of(WHAT | change) != key_of(WHAT)

    def test_it_is_sixteen_digits_that_never_change(self):
        assert key_of({"seed": 0}) == "de7d7744ccd7722e"
