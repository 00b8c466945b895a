import dataclasses

import pytest

import study_runs


class TestKey:
    def test_what_a_run_is_makes_its_key(self):
        changes = ({}, {"method": "vanilla"}, {"seed": 1}, {"num_rounds": 9})
        runs = [study_runs.run(**changed) for changed in changes]
        assert len({run.key for run in runs}) == len(runs)

    def test_where_its_files_are_and_what_it_is_for_do_not(self):
        run = study_runs.run()
        moved = dataclasses.replace(run, setting="four sites", where={"sites": []})
        assert moved.key == run.key


@pytest.mark.parametrize(
    ("method", "processes"), [("surgical", 4), ("vanilla", 4), ("complete", 1)]
)
def test_every_site_of_a_federation_is_a_process_and_without_one_there_is_one(method, processes):
    sites = dict.fromkeys("abcd", ("Mass",))
    assert study_runs.run(method, sites=sites).processes == processes


def test_it_knows_how_many_rounds_it_makes():
    assert study_runs.run(num_rounds=150).rounds == 150


def test_its_name_tells_setting_row_and_seed():
    assert study_runs.run(seed=3, setting="4").name == "4, surgical-fedbn+, seed 3"
