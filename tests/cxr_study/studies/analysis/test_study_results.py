import study_runs
from cxr_study.studies.analysis.study_results import gather
from cxr_study.studies.plan.study_file import read_study

LABELS = {"Edema": [1.0, 0, 1, 0], "Mass": [1.0, 1, 0, 0]}


def test_what_is_finished_is_gathered_and_measured(tmp_path):
    done, planned = study_runs.run(), study_runs.run("vanilla")
    tests = {"nih": study_runs.table(LABELS)}
    predicted = {"Edema": [0.9, 0.1, 0.8, 0.2], "Mass": [0.1, 0.2, 0.8, 0.9]}
    study_runs.finish(done, tmp_path, tests, {("global", "nih"): predicted})
    found = gather(read_study("clients"), [done, planned], tmp_path)
    assert found.runs == (done, planned) and found.finished == (done,)
    assert list(found.results) == [done.key]
    assert found.scores.set_index("class")["auroc"].to_dict() == {"Edema": 1.0, "Mass": 0.0}
    assert found.means.set_index("group").loc["all", "auroc"] == 0.5
    assert found.seeds.set_index("group").loc["all", "seeds"] == 1


def test_where_nothing_is_finished_there_is_nothing(tmp_path):
    assert gather(read_study("clients"), [study_runs.run()], tmp_path) is None
