import dataclasses

import pytest

import study_runs
from cxr_study.studies.plan.planned_run import key_of

WHAT = {"sites": 2, "classes": ["Mass", "Ödem"]}


def test_what_a_run_is_makes_its_key_and_not_where_it_is_or_what_it_is_for():
    changes = ({}, {"method": "vanilla"}, {"seed": 1}, {"num_rounds": 9})
    run, *others = (study_runs.run(**changed) for changed in changes)
    assert len({each.key for each in (run, *others)}) == len(changes)
    moved = dataclasses.replace(run, scenario="four sites", where={"sites": []})
    assert moved.key == run.key


def test_it_tells_its_name_rounds_and_processes():
    sites = dict.fromkeys("abcd", ("Mass",))
    methods = ("surgical", "vanilla", "complete")
    assert [study_runs.run(each, sites=sites).processes for each in methods] == [4, 4, 1]
    run = study_runs.run(seed=3, scenario="4", num_rounds=150)
    assert (run.name, run.rounds) == ("4, surgical-fedbn+, seed 3", 150)


class TestKeyOf:
    def test_the_same_content_has_the_same_key_whatever_the_order_of_its_names(self):
        turned = dict(reversed(WHAT.items()))
        assert key_of(turned) == key_of(WHAT) == key_of({**WHAT, "classes": ("Mass", "Ödem")})

    @pytest.mark.parametrize("change", [{"sites": 3}, {"classes": ["Ödem", "Mass"]}, {"seed": 0}])
    def test_other_content_has_another(self, change):
        assert key_of(WHAT | change) != key_of(WHAT)

    def test_it_is_sixteen_digits_that_never_change(self):
        assert key_of({"seed": 0}) == "de7d7744ccd7722e"
