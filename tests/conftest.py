"""Puts the test support modules on the path, and shares the tests out among workers."""

import os
import sys
from contextlib import suppress
from pathlib import Path

import hypothesis
import psutil
import pytest

with suppress(ImportError):
    import tenseal  # noqa: F401  # before TensorFlow: after it, the process would crash

TESTS = Path(__file__).parent
SUPPORT = str(TESTS / "support")
sys.path.insert(0, SUPPORT)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [SUPPORT, os.environ.get("PYTHONPATH")]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# A machine that does several things at once has no steady pace.
hypothesis.settings.register_profile("steady", deadline=None)
hypothesis.settings.load_profile("steady")

WORKER = 4 * 2**30
"""Memory for one worker and the sites that its tests start, each with TensorFlow; bytes."""

SHARED = {
    "simulator/test_evaluation.py": "runs",
    "simulator/test_filters.py": "runs",
    "simulator/test_homomorphic.py": "runs",
    "simulator/test_recipe.py": "runs",
    "simulator/test_run.py": "runs",
    "poc/test_evaluation.py": "network",
    "poc/test_policy.py": "network",
    "poc/test_provisioned.py": "network",
    "poc/test_submission.py": "network",
}
"""File -> session fixture that takes long and that it shares with others: one worker gets them."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """A worker for every core, as far as there is memory for them."""
    memory = psutil.virtual_memory().available
    return max(1, min(len(os.sched_getaffinity(0)), int(memory / WORKER)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Files go to workers whole, those of `SHARED` together; in the order of collection."""
    from xdist.scheduler import LoadFileScheduling

    class ByFixture(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = nodeid.partition("::")[0]
            return SHARED.get(file.removeprefix(f"{TESTS.name}/"), file)

    config.option.loadscopereorder = False
    return ByFixture(config, log)


def pytest_collection_modifyitems(items):
    """Begin with what takes longest."""
    marks = ("poc", "simulator")
    long = {item.path for item in items if any(map(item.get_closest_marker, marks))}
    shared = {TESTS / file for file in SHARED}
    items.sort(key=lambda item: (item.path not in shared, item.path not in long))
