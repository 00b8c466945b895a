"""Runs in FLARE's real simulator, shared by the tests that look at them."""

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

import tiny_job
from tiny_run import SITES, run

FAULTS = [
    "west:1:crash", "west:2:crash", "west:3:crash", "south:2:nan", "north:3:foreign",
]  # fmt: skip


@pytest.fixture(scope="session")
def initial_body(tmp_path_factory):
    return tiny_job.initial_body(tmp_path_factory.mktemp("initial") / "body.npz")


@pytest.fixture(scope="session")
def runs(tmp_path_factory, initial_body):
    """Three runs: two of the same job, the first captured and tracked, and one with faults."""
    folder = tmp_path_factory.mktemp("runs")
    with ThreadPoolExecutor() as pool:
        first = pool.submit(
            run, folder / "first", SITES, initial_body, capture=True, num_rounds=3,
            tracking="tensorboard",
        )  # fmt: skip
        second = pool.submit(run, folder / "second", SITES, initial_body, num_rounds=3)
        faulty = pool.submit(
            run, folder / "faulty", SITES, initial_body, plan=FAULTS, num_rounds=4, min_clients=1,
            wait_seconds=60,
        )  # fmt: skip
        return SimpleNamespace(first=first.result(), second=second.result(), faulty=faulty.result())
