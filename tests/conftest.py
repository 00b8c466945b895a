"""Test support on the path; the tiers of the tests, and how workers share them out.

A test's tier is decided here, by its folder or file, and is a mark of it (`-m keras`). `--tier` is
quicker than `-m`: files of other tiers are not even imported.
"""

import os
import sys
from collections import Counter
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

TIERS = {
    "quick": "pure or tiny: no TensorFlow, no FLARE process, no wheel, no browser",
    "keras": "imports TensorFlow, builds a wheel, or runs a command of FLARE",
    "simulator": "starts real FLARE simulator processes",
    "poc": "starts a real FLARE system (server, sites, admin) on this machine",
}
"""Tier -> what its tests do; each does what those before it may do as well."""

ABOVE_QUICK = {
    "poc": "poc",
    "simulator": "simulator",
    "cxr_study/deployment/test_poc_system.py": "keras",
    "cxr_study/studies/test_predictions.py": "keras",
    "cxr_study/test_augmentation.py": "keras",
    "cxr_study/test_cli_poc.py": "keras",
    "cxr_study/test_cli_train.py": "keras",
    "cxr_study/test_evaluation.py": "keras",
    "cxr_study/test_input_pipeline.py": "keras",
    "cxr_study/test_model.py": "keras",
    "cxr_study/test_pooled_site.py": "keras",
    "cxr_study/test_pretrain.py": "keras",
    "cxr_study/test_site.py": "keras",
    "cxr_study/test_solo_training.py": "keras",
    "jobs/test_job.py": "keras",
    "surgical_aggregation/test_contract.py": "keras",
    "surgical_aggregation/test_declaration.py": "keras",
    "surgical_aggregation/test_executor.py": "keras",
    "surgical_aggregation/test_local_model.py": "keras",
    "surgical_aggregation/test_local_training.py": "keras",
    "surgical_aggregation/test_loss.py": "keras",
    "surgical_aggregation/test_network.py": "keras",
    "surgical_aggregation/test_permitted_site.py": "keras",
    "surgical_aggregation/test_site.py": "keras",
    "surgical_aggregation/test_site_memory.py": "keras",
    "surgical_aggregation/test_site_tasks.py": "keras",
    "surgical_aggregation/test_tensorflow_runtime.py": "keras",
    "test_packaging.py": "keras",
}
"""Folder or file -> its tier; of all others it is "quick"."""

GROUPS = {
    "simulator/test_evaluation.py": "runs",
    "simulator/test_filters.py": "runs",
    "simulator/test_homomorphic.py": "runs",
    "simulator/test_run.py": "runs",
    "poc/test_evaluation.py": "network",
    "poc/test_policy.py": "network",
    "poc/test_provisioned.py": "network",
    "poc/test_submission.py": "network",
}
"""File -> session fixture that it shares with others, which one worker gets; else alone."""

PYTHON = sys.executable  # as it is; tests put programs of their own in its place
NOT_QUICK = ("nvflare", "pip", "build")
"""Packages that a quick test does not run as a program."""

hypothesis.settings.register_profile("deep", deadline=None, max_examples=1000)
hypothesis.settings.register_profile("ci", deadline=None)
hypothesis.settings.register_profile("dev", deadline=None, max_examples=10)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def tier(path):
    """Tier of a test file, by its path below `TESTS`."""
    found = ABOVE_QUICK.get(path.parts[0]) if path.parts else None
    return found or ABOVE_QUICK.get(path.as_posix(), "quick")


def pytest_addoption(parser):
    parser.addoption(
        "--tier", action="append", choices=TIERS, default=[],
        help="only tests of this tier; may be repeated",
    )  # fmt: skip


def pytest_configure(config):
    for name, what in TIERS.items():
        config.addinivalue_line("markers", f"{name}: {what}; set by folder or file in conftest.py")
    if config.getoption("tier") == ["quick"]:
        sys.modules["tensorflow"] = sys.modules["keras"] = None  # an import would fail
        sys.addaudithook(_start_nothing_slow)


def _start_nothing_slow(event, args):
    if event == "subprocess.Popen":
        program, *words = map(os.fsdecode, args[1])
        slow = program == PYTHON and words[0] == "-m" and words[1].startswith(NOT_QUICK)
        assert not slow, f"a quick test does not run {words[1]}; give its file another tier"


def pytest_ignore_collect(collection_path, config):
    """Do not import test files of other tiers than those asked for."""
    wanted = config.getoption("tier")
    if wanted and collection_path.name.startswith("test_"):
        return True if tier(collection_path.relative_to(TESTS)) not in wanted else None
    return None


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups
def pytest_collection_modifyitems(items):
    """Mark every test with its tier and group; begin with what takes longest."""
    ranks = list(TIERS)
    keys = {}
    for item in items:
        path = item.path.relative_to(TESTS)
        group = GROUPS.get(path.as_posix(), path.as_posix())
        item.add_marker(tier(path))
        item.add_marker(pytest.mark.xdist_group(group))
        keys[item] = (-ranks.index(tier(path)), group == path.as_posix())
    items.sort(key=keys.get)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """A worker for every core, as far as there is memory for them."""
    memory = psutil.virtual_memory().available
    return max(1, min(len(os.sched_getaffinity(0)), int(memory / WORKER)))


WORKER = 4 * 2**30
"""Memory for one worker and the sites that its tests start, each with TensorFlow; bytes."""

_seconds = Counter()
_tests = Counter()


def pytest_runtest_logreport(report):
    """Add up how long each tier takes."""
    name = tier(Path(report.nodeid.partition("::")[0]).relative_to(TESTS.name))
    _seconds[name] += report.duration
    _tests[name] += report.when == "call"


def pytest_terminal_summary(terminalreporter):
    """Say it."""
    if _tests:
        terminalreporter.section("tiers")
        for name in TIERS:
            if name in _seconds:
                terminalreporter.line(
                    f"{name:10}{_tests[name]:6,} tests {_seconds[name]:8.1f} s of the workers' time"
                )
