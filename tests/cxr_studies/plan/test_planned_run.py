import dataclasses
import json

import pytest

import study_runs
from cxr_studies.plan.planned_run import key_of
from cxr_studies.plan.run_folder import RESULT_FILE, read_result, write_result


def test_the_key_of_a_run_is_of_its_content_not_of_its_paths_or_scenario():
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


def test_a_key_is_of_the_content_whatever_the_order_of_its_names_and_never_changes():
    what = {"sites": 2, "classes": ["Mass", "Ödem"]}
    key = key_of(what)
    assert (
        key_of(dict(reversed(what.items()))) == key_of({**what, "classes": ("Mass", "Ödem")}) == key
    )
    for change in ({"sites": 3}, {"classes": ["Ödem", "Mass"]}, {"seed": 0}):
        assert key_of(what | change) != key
    assert key_of({"seed": 0}) == "de7d7744ccd7722e"


def test_a_result_is_read_as_it_was_written_and_stays_where_another_cannot_be_written(tmp_path):
    assert read_result(tmp_path) is None and read_result(tmp_path / "nowhere") is None
    result = dataclasses.replace(
        study_runs.RESULT, losses=(None, 0.1 + 0.2), aurocs=(None, 0.75),
        column_similarity=({}, {"Ödem": -0.5}), tests={"nih": "0123"},
        classes={"global": ["Ödem", "Mass"]}, digests={"global": "4567"},
    )  # fmt: skip
    write_result(result, tmp_path)
    with pytest.raises(ValueError, match="JSON"):
        write_result(dataclasses.replace(result, losses=(float("nan"),)), tmp_path)
    assert read_result(tmp_path) == result
    earlier = json.loads((tmp_path / RESULT_FILE).read_text(encoding="utf-8"))
    del earlier["aurocs"], earlier["images"]
    (tmp_path / "earlier").mkdir()
    (tmp_path / "earlier" / RESULT_FILE).write_text(json.dumps(earlier), encoding="utf-8")
    assert read_result(tmp_path / "earlier") == dataclasses.replace(result, aurocs=(), images=0)
    assert "Ödem" in (tmp_path / RESULT_FILE).read_text(encoding="utf-8")  # for people to read
