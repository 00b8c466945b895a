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


FOUR, FREE = Machine(cores=4, memory=PLENTY), Machine(cores=100, memory=PLENTY)
LARGE = alone(image_size=224)
TAKEN = 2 * 0.6e9 + 8 * 224**2 * 1100  # bytes for one of it
SEVERAL = [alone() for _ in range(12)]
KNOWN = [(alone(), 1.0), (federation(4), 100.0), (federation(10), 1000.0)]
NEAREST = {2: 1, 5: 100, 8: 1000}
TWO_SITES = Machine(cores=100, memory=2 * (3 * 0.6e9 + 2 * 8 * 32**2 * 1100))  # just fit twice


@pytest.mark.parametrize(("machine", "run", "beside", "fits"), [
    # Three and a half processes for each core run side by side.
    (FOUR, federation(3), [federation(4), federation(4), federation(3)], True),
    (FOUR, federation(4), [federation(4), federation(4), federation(3)], False),
    # A federation of more sites than cores takes no more than all.
    (FOUR, federation(2), [federation(10)] * 3, True),
    (FOUR, federation(3), [federation(10)] * 3, False),
    (Machine(cores=100, memory=3 * TAKEN), LARGE, [LARGE] * 2, True),
    (Machine(cores=100, memory=2.99 * TAKEN), LARGE, [LARGE] * 2, False),
    (TWO_SITES, federation(2), [federation(2)], True),
    (TWO_SITES, federation(2, image_size=64), [federation(2)], False),
    (TWO_SITES, federation(2, batch_size=9), [federation(2)], False),
    (TWO_SITES, federation(3), [federation(2)], False),
    # The first one always fits.
    (Machine(cores=99, memory=1), federation(10), [], True),
    (Machine(cores=99, memory=1), federation(10), [alone()], False),
    (Machine(cores=99, memory=PLENTY, at_once=2), alone(), [alone()], True),
    (Machine(cores=99, memory=PLENTY, at_once=2), alone(), [alone()] * 2, False),
])  # fmt: skip
def test_runs_take_no_more_together_than_there_is(machine, run, beside, fits):
    assert machine.has_room(run, beside) == fits


def test_this_machine_has_its_cores_and_most_of_the_memory_that_is_free(monkeypatch):
    free = SimpleNamespace(available=8e9, total=64e9)
    monkeypatch.setattr(machine_capacity.psutil, "virtual_memory", lambda: free)
    monkeypatch.setattr(machine_capacity.tensorflow_setup, "cores", lambda: 3)
    assert Machine.here() == Machine(cores=3, memory=0.9 * 8e9)
    assert Machine.here(2) == Machine(cores=3, memory=0.9 * 8e9, at_once=2)


@pytest.mark.parametrize(("machine", "todo", "done", "seconds"), [
    (FOUR, [alone()], [], None),
    (FOUR, [], [(alone(), 10.0)], 0),
    # So many at a time as fit, each as long as the finished ones on average.
    (Machine(2, PLENTY), SEVERAL, [(alone(), 10.0), (alone(), 20.0)], 12 / 7 * 15),
    (Machine(2, 2 * 1.3e9), SEVERAL, [(alone(), 10.0), (alone(), 20.0)], 12 / 2 * 15),
    (Machine(2, 1.0), SEVERAL, [(alone(), 10.0), (alone(), 20.0)], 12 * 15),
    (Machine(99, PLENTY, at_once=2), SEVERAL, [(alone(), 10.0)], 12 / 2 * 10),
    (FOUR, [federation(4) for _ in range(6)], [(federation(4), 10.0)], 6 / 3 * 10),
    # As long as those with the nearest number of processes.
    *((Machine(1, 1.0), [federation(n)], KNOWN, left) for n, left in NEAREST.items()),
    # What runs side by side takes as long as the longest.
    (FREE, [alone(), federation(2)], [(alone(), 1.0), (federation(2), 60.0)], 60),
])  # fmt: skip
def test_how_long_runs_will_take(machine, todo, done, seconds):
    assert machine.seconds_left(todo, done) == pytest.approx(seconds)
