import sys
from types import SimpleNamespace

import pytest
from nvflare.apis.event_type import EventType
from nvflare.apis.shareable import Shareable

from flare import Engine, context
from surgical_aggregation.byoc_check import ByocCheck, ByocError, check


def package(folder, **modules):
    """Write a package `byoc_example` with one module per keyword; returns its folder."""
    path = folder / "byoc_example"
    path.mkdir(parents=True)
    for name, text in {"__init__": "", **modules}.items():
        (path / f"{name}.py").write_text(text)
    return path


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package that is installed: it comes first on the path."""
    monkeypatch.syspath_prepend(tmp_path / "installed")
    yield package(tmp_path / "installed", wire="VERSION = 1\n", head="")
    sys.modules.pop("byoc_example", None)


@pytest.fixture
def job(tmp_path):
    return tmp_path / "job"


def started(job, **arguments):
    """The check after START_RUN of a job whose custom/ is the folder; and the context."""
    engine = Engine()
    engine.get_workspace = lambda: SimpleNamespace(get_app_custom_dir=lambda job_id: str(job))
    check_ = ByocCheck(["byoc_example"], **arguments)
    fl_ctx = context(engine=engine)
    check_.handle_event(EventType.START_RUN, fl_ctx)
    return check_, fl_ctx


SAME = {"wire": "VERSION = 1\n", "head": ""}


@pytest.mark.parametrize(
    "modules",
    [{**SAME, "wire": "VERSION = 2\n"}, {**SAME, "newer": ""}, {"wire": SAME["wire"]}],
    ids=["changed", "added", "removed"],
)
def test_an_installed_copy_that_differs_in_one_file_is_refused(installed, job, modules):
    with pytest.raises(ByocError, match="another copy is installed here") as caught:
        check("byoc_example", package(job, **modules))
    assert "1 files differ, '" in str(caught.value)  # and which, but not where
    assert str(installed.parent) not in str(caught.value)


@pytest.mark.parametrize("raised", ["OSError('no disk')", "OSError"])
def test_a_package_that_cannot_be_compared_is_not_run_unchecked(installed, job, raised):
    (installed / "__init__.py").write_text(f"raise {raised}")
    package(job, **SAME)
    check_, fl_ctx = started(job)
    with pytest.raises(ByocError, match=r"no disk|OSError"):
        check_.process(Shareable(), fl_ctx)


def test_a_job_that_brings_nothing_is_refused(installed, job):
    with pytest.raises(ByocError, match="brings no package 'byoc_example'"):
        check("byoc_example", job / "byoc_example")


@pytest.mark.parametrize("ends_run", [False, True], ids=["site", "server"])
def test_a_site_with_other_code_refuses_every_task_and_a_server_with_it_ends_the_run(
    installed, job, ends_run
):
    package(job, **{**SAME, "wire": "VERSION = 2\n"})
    check_, fl_ctx = started(job, ends_run=ends_run)
    assert (EventType.FATAL_SYSTEM_ERROR in fl_ctx.get_engine().events) == ends_run
    for _ in range(2):
        with pytest.raises(ByocError, match="another copy is installed here"):
            check_.process(Shareable(), fl_ctx)


def test_the_same_code_runs_whatever_signatures_and_compiled_files_it_has(installed, job):
    shipped, task = package(job, **SAME), Shareable()
    (shipped / ".__nvfl_sig.json").touch()
    (shipped / "__pycache__").mkdir()
    (shipped / "__pycache__" / "wire.cpython-311.pyc").touch()
    check_, fl_ctx = started(job, ends_run=True)
    assert EventType.FATAL_SYSTEM_ERROR not in fl_ctx.get_engine().events
    assert check_.process(task, fl_ctx) is task
