"""The tiers of the tests, and how workers share them out.

A test's tier is that of its folder or file (see support/tiers.py), and a mark of it (`-m slow`).
`--tier=poc` is quicker than `-m poc`: files of other tiers are not even imported.
"""

import os
import shutil
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

import profiles  # noqa: F401  # loads the profile that is asked for
from once import once
from tiers import HEAVIEST, TIERS, tier

with suppress(ImportError):
    import tenseal  # noqa: F401  # before TensorFlow: after it, the process would crash

TESTS = Path(__file__).parent
SUPPORT = str(TESTS / "support")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [SUPPORT, os.environ.get("PYTHONPATH")]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

PYTHON = sys.executable  # as it is; tests replace it by their own programs
NOT_QUICK = ("nvflare", "pip", "build")
"""Packages that a quick test does not run as a program."""

WORKER = 4 * 2**30
"""Memory for one worker and the sites that its tests start, some with TensorFlow; bytes."""


@pytest.fixture(scope="session")
def drawn(tmp_path_factory):
    """A phantom of 200 small images a site, to be read."""
    from cxr_phantom.writers.write_phantom import write_phantom

    def make(folder):
        write_phantom(folder / "phantom", images_per_site=200, size=16)

    return once(tmp_path_factory, "drawn", make) / "phantom"


@pytest.fixture(scope="module")
def drawn_sites(drawn, tmp_path_factory):
    """The folder of its site files, with a cache of the module's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SURGAGG_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield str(drawn / "sites")


@pytest.fixture
def phantom(drawn, tmp_path):
    """A copy of it that a test may change."""
    return shutil.copytree(drawn, tmp_path / "phantom")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of the test's own; what is printed has wide lines."""
    monkeypatch.setenv("SURGAGG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")


def pytest_addoption(parser):
    parser.addoption(
        "--tier", action="append", choices=TIERS, default=[],
        help="only tests of this tier; may be repeated",
    )  # fmt: skip


def pytest_configure(config):
    for name, what in TIERS.items():
        line = f"{name}: {what}; set by folder or file in support/tiers.py"
        config.addinivalue_line("markers", line)
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


def pytest_make_parametrize_id(val):
    """A long text is not the name of a test, which goes into each process's environment."""
    return repr(val[:40]) if isinstance(val, (str, bytes)) and len(val) > 200 else None


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups
def pytest_collection_modifyitems(items):
    """Mark every test with its tier, and its file as a group; begin with what takes longest."""

    def order(item):
        path = item.path.relative_to(TESTS)
        file = path.as_posix()
        item.add_marker(tier(path))
        item.add_marker(pytest.mark.xdist_group(file))
        begins = HEAVIEST.index(file) if file in HEAVIEST else len(HEAVIEST)
        return begins, -list(TIERS).index(tier(path)), file

    items.sort(key=order)


@pytest.fixture(scope="session", autouse=True)
def _temporary_files(tmp_path_factory):
    """TensorFlow's temporary files outlive a killed process: they go with those of the tests."""
    os.environ["TMPDIR"] = tempfile.tempdir = str(tmp_path_factory.mktemp("tmp"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """A worker for every core, and two more for those that wait for FLARE; as memory allows."""
    waiting = 0 if config.getoption("tier") == ["quick"] else 2
    memory = psutil.virtual_memory().available
    return max(1, min(len(os.sched_getaffinity(0)) + waiting, int(memory / WORKER)))


_seconds, _tests = Counter(), Counter()


def pytest_runtest_logreport(report):
    name = tier(Path(report.nodeid.partition("::")[0]).relative_to(TESTS.name))
    _seconds[name] += report.duration
    _tests[name] += report.when == "call"


def pytest_terminal_summary(terminalreporter):
    """Say how long each tier took."""
    if _tests:
        terminalreporter.section("tiers")
        for name in filter(_seconds.get, TIERS):
            seconds = f"{_seconds[name]:8.1f} s of the workers' time"
            terminalreporter.line(f"{name:10}{_tests[name]:6,} tests {seconds}")
