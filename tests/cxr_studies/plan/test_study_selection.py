import dataclasses

import pytest

from cxr_studies.plan.row import Row
from cxr_studies.plan.study_file import read_study
from cxr_studies.plan.study_selection import Selection, StudyError, trainings

NOT_CUT = {"scenarios": ("non-iid partial",), "methods": ("complete",)}


def wanted(study, **selection):
    return [
        (seed, scenario.name, row)
        for seed, scenario, row in trainings(read_study(study), Selection(**selection))
    ]


def test_every_scenario_has_every_row_that_is_for_it_and_every_seed():
    assert wanted("clients", scenarios=("2", "4"), seeds=2) == [
        (seed, scenario, row)
        for seed in (0, 1)
        for scenario in ("2", "4")
        for row in read_study("clients").rows
    ]
    found = wanted("fedfbn", seeds=1)
    complete = {scenario for _, scenario, row in found if row.method == "complete"}
    assert complete == {"iid complete", "iid partial"}
    assert Row("surgical", "fedbn") in {row for _, _, row in found}


def test_the_study_says_how_many_seeds_and_which_scenarios_the_quick_form_has():
    study = read_study("shared-classes")
    found = wanted(study.name, methods=("surgical",))
    assert {seed for seed, _, _ in found} == set(range(study.seeds))
    found = wanted(study.name, methods=("surgical",), seeds=1, quick=True)
    assert tuple(scenario for _, scenario, _ in found) == study.quick


@pytest.mark.parametrize(("study", "asked", "told"), [
    ("clients", {"scenarios": ("9",)}, "study clients has no scenario '9'"),
    ("clients", {"methods": ("surgicle",)}, "no method 'surgicle'; nearest .* surgical"),
    ("clients", {"scenarios": ("3",), "quick": True}, r"no run .*\(the quick form; scenarios 3\)"),
    ("fedfbn", NOT_CUT, r"no run of .*\(scenarios non-iid partial; methods complete\)"),
])  # fmt: skip
def test_what_the_study_does_not_have_or_leaves_nothing_is_refused(study, asked, told):
    with pytest.raises(StudyError, match=told):
        wanted(study, **asked)


def test_a_selection_is_told_in_words():
    assert str(Selection()) == "all of it"
    every = Selection(("2", "4"), ("vanilla",), 1, quick=True)
    assert str(every) == "the quick form; scenarios 2, 4; methods vanilla; 1 seed"
    assert str(dataclasses.replace(every, scenarios=None, seeds=3)).endswith("vanilla; 3 seeds")
