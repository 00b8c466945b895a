from types import SimpleNamespace

import pytest

import study_runs
from cxr_study.studies.runner import machine_capacity
from cxr_study.studies.runner.machine_capacity import Machine

PLENTY = 1e15
"""Memory, bytes."""


def federation(sites, **settings):
    names = [f"nih-{number}" for number in range(sites)]
    return study_runs.run("surgical", sites=dict.fromkeys(names, ("Mass",)), **settings)


def alone(**settings):
    return study_runs.run("complete", **settings)


class TestRoomByCores:
    def test_three_and_a_half_processes_for_each_core_run_side_by_side(self):
        four = Machine(cores=4, memory=PLENTY)
        assert four.has_room(federation(3), [federation(4), federation(4), federation(3)])
        assert not four.has_room(federation(4), [federation(4), federation(4), federation(3)])

    def test_a_federation_of_more_sites_than_cores_takes_no_more_than_all(self):
        four = Machine(cores=4, memory=PLENTY)
        assert four.has_room(federation(2), [federation(10)] * 3)
        assert not four.has_room(federation(3), [federation(10)] * 3)


class TestRoomByMemory:
    def test_runs_take_no_more_together_than_there_is(self):
        run = alone(image_size=224)
        taken = 2 * 0.6e9 + 8 * 224**2 * 1100
        assert Machine(cores=100, memory=3 * taken).has_room(run, [run, run])
        assert not Machine(cores=100, memory=2.99 * taken).has_room(run, [run, run])

    @pytest.mark.parametrize(
        "larger", [federation(2, image_size=64), federation(2, batch_size=9), federation(3)]
    )
    def test_larger_images_batches_and_federations_take_more(self, larger):
        run = federation(2)
        tight = Machine(cores=100, memory=2 * (3 * 0.6e9 + 2 * 8 * 32**2 * 1100))
        assert tight.has_room(run, [run])
        assert not tight.has_room(larger, [run])


def test_the_first_run_always_fits_and_a_second_need_not():
    small = Machine(cores=99, memory=1)
    assert small.has_room(federation(10), [])
    assert not small.has_room(federation(10), [alone()])


def test_no_more_run_at_once_than_is_said():
    two = Machine(cores=99, memory=PLENTY, at_once=2)
    assert two.has_room(alone(), [alone()])
    assert not two.has_room(alone(), [alone(), alone()])
    assert two.seconds_left([alone() for _ in range(6)], [(alone(), 10.0)]) == 6 / 2 * 10


def test_this_machine_has_its_cores_and_most_of_the_memory_that_is_free(monkeypatch):
    free = SimpleNamespace(available=8e9, total=64e9)
    monkeypatch.setattr(machine_capacity.psutil, "virtual_memory", lambda: free)
    monkeypatch.setattr(machine_capacity.tensorflow_setup, "cores", lambda: 3)
    assert Machine.here() == Machine(cores=3, memory=0.9 * 8e9)
    assert Machine.here(2) == Machine(cores=3, memory=0.9 * 8e9, at_once=2)


class TestSecondsLeft:
    def test_it_is_unknown_before_a_run_is_finished_and_0_where_nothing_is_left(self):
        assert Machine(4, PLENTY).seconds_left([alone()], []) is None
        assert Machine(4, PLENTY).seconds_left([], [(alone(), 10.0)]) == 0

    def test_so_many_at_a_time_as_fit_each_as_long_as_the_finished_ones_on_average(self):
        done = [(alone(), 10.0), (alone(), 20.0)]
        todo = [alone() for _ in range(12)]
        assert Machine(2, PLENTY).seconds_left(todo, done) == pytest.approx(12 / 7 * 15)
        assert Machine(2, 2 * 1.3e9).seconds_left(todo, done) == 12 / 2 * 15
        assert Machine(2, 1.0).seconds_left(todo, done) == 12 * 15
        done = [(federation(4), 10.0)]
        left = Machine(4, PLENTY).seconds_left([federation(4) for _ in range(6)], done)
        assert left == 6 / 3 * 10

    def test_a_run_takes_as_long_as_finished_ones_with_the_nearest_number_of_processes(self):
        done = [(alone(), 1.0), (federation(4), 100.0), (federation(10), 1000.0)]
        one_by_one = Machine(1, 1.0)
        known = {sites: one_by_one.seconds_left([federation(sites)], done) for sites in (2, 5, 8)}
        assert known == {2: 1, 5: 100, 8: 1000}

    def test_what_runs_side_by_side_takes_as_long_as_the_longest(self):
        done = [(alone(), 1.0), (federation(2), 60.0)]
        assert Machine(100, PLENTY).seconds_left([alone(), federation(2)], done) == 60
