import dataclasses

import pandas as pd

import study_runs
from cxr_study.reports.study.facts import PHANTOM
from cxr_study.reports.study.notices import notices, without_subgroups
from cxr_study.studies.plan.data_file import StudyData
from study_scores import results

REAL = StudyData("mine", None, {}, None, None, {})


def told(*runs, data=REAL, planned=(), study="clients"):
    """Notices about finished and planned runs."""
    found = results({run: {("global", "nih"): {"Edema": 0.8}} for run in runs}, planned, study)
    return list(notices(found, data))


def as_planned(found, **changes):
    return dataclasses.replace(found, study=dataclasses.replace(found.study, **changes))


class TestNotices:
    def test_a_part_of_the_studys_file_is_said_to_be_one(self):
        runs = [study_runs.run(setting=name) for name in ("10", "2")]
        planned = [study_runs.run("vanilla", setting="4")]
        assert (
            "A part of the study: 3 of 7 settings (2, 4, 10), 2 of 5 methods with their "
            "strategies, 1 of 3 seeds."
        ) in told(*runs, planned=planned)

    def test_only_what_is_less_is_named(self):
        found = results({study_runs.run(): {("global", "nih"): {"Edema": 0.8}}})
        rows = (found.runs[0].row,)
        [first, *_] = notices(as_planned(found, rows=rows), REAL)
        assert first == "A part of the study: 1 of 7 settings (2), 1 of 3 seeds."
        settings = tuple(each for each in found.study.settings if each.name == "2")
        whole = as_planned(found, rows=rows, settings=settings, seeds=1)
        assert not any("A part" in notice for notice in notices(whole, REAL))

    def test_one_seed_decides_nothing_but_that_models_are_the_same(self):
        [*_, last] = told(study_runs.run())
        assert "One seed" in last and last.endswith("but that models are the same.")
        assert "One seed" not in " ".join(told(study_runs.run(), study_runs.run(seed=1)))

    def test_phantom_data_unfinished_runs_and_test_sets_that_are_not_there_are_told(self):
        phantom = dataclasses.replace(REAL, images=2000)
        found = told(study_runs.run(), data=phantom, planned=[study_runs.run(seed=1)])
        assert found[0] == PHANTOM
        assert "1 of 2 runs are not finished; figures are of the others." in found
        assert "Not tested on mimic: the data file does not have it." in found
        assert PHANTOM not in told(study_runs.run())


class TestWithoutSubgroups:
    def of(self, **compared):
        """Notices of {test set: {kind: how many classes can be compared}}."""
        lines = [
            {"test": test, "kind": kind, "subgroup": name, "compared": number}
            for test, kinds in compared.items()
            for kind, number in kinds.items()
            for name in "ab"
        ]
        return list(without_subgroups(pd.DataFrame(lines)))

    def test_a_test_set_that_does_not_tell_a_kind_is_named(self):
        assert self.of(nih={"sex": 3, "age": 2, "view": 1}, mimic={"view": 2}) == [
            "MIMIC does not tell sex and age."
        ]

    def test_a_kind_without_a_class_to_compare_is_named(self):
        assert self.of(nih={"sex": 3, "age": 0, "view": 0.5}) == [
            "NIH, by age: no class has 10 positives and 10 negatives in every subgroup."
        ]

    def test_without_a_subgroup_there_is_nothing_to_say(self):
        assert self.of() == []
