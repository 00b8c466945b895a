import re
import threading
import time
from contextlib import ExitStack
from unittest.mock import Mock

import pytest
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.impl.controller import Controller
from nvflare.apis.shareable import Shareable, make_reply
from nvflare.app_common.app_constant import AppConstants

from surgical_aggregation.aggregation.site_result import SiteResult
from surgical_aggregation.server.access.job_sites import NOT_STARTED, site_of
from surgical_aggregation.server.workflows import collecting_controller
from surgical_aggregation.server.workflows.collecting_controller import TaskStatus
from surgical_aggregation.wire.headers import CLASSES_DECLARED, COLLECTED, GONE, REFUSAL, UNREADABLE
from workflow import SECONDS, runner, running


class Base(Controller):
    """Stands for a FLARE workflow."""

    def start_controller(self, fl_ctx):
        self.started = True

    def control_flow(self, abort_signal, fl_ctx):
        raise NotImplementedError

    def stop_controller(self, fl_ctx):
        pass


class Workflow(collecting_controller.CollectingController, Base):
    """A workflow that refuses results marked by a test."""

    def current_round(self, fl_ctx):
        return 3

    def read(self, shareable):
        if shareable.get("raises"):
            raise KeyError("auroc")
        return SiteResult({}, {}, features=shareable.get("fault"))

    def fault(self, result, fl_ctx):
        return result.features


@pytest.fixture
def start(panics, monkeypatch):
    """Start a task at three sites."""
    monkeypatch.setattr(collecting_controller, "_POLL_SECONDS", 0.02)
    with ExitStack() as tasks:
        yield lambda **options: tasks.enter_context(running(Workflow(), **options))


def gone(task, site):
    """The heartbeat has found a site gone."""
    task.fl_ctx.set_prop(GONE, {site: "no heartbeat"}, private=True, sticky=True)


class TestEnd:
    def test_after_enough_results_the_others_get_the_configured_wait(self, start, panics):
        task = start(needed=2, wait=600)
        task.answer("north")
        task.answer("south")
        assert not task.is_over(0.3)
        task.controller._status.wait = 0.3
        assert task.is_over() and panics == []
        assert task.engine.announced == [("silent", "west", "it has not requested the task")]
        assert task.engine.events.count(CLASSES_DECLARED) == 2  # of those that asked

    @pytest.mark.parametrize("code", [ReturnCode.EXECUTION_EXCEPTION, ReturnCode.UNSAFE_JOB])
    def test_a_failed_result_or_a_second_one_does_not_count(self, start, panics, monkeypatch, code):
        """FLARE would end the round at the failure, and the run for lack of results."""
        ending = runner()
        task = start(needed=2, wait=600, runner=ending)
        assert ending.ABORT_RETURN_CODES == [] and task.controller.started
        task_id, _ = task.ask("north")
        for _ in range(2):
            task.answer("north", task_id=task_id)
        task.fail("west", code)
        assert not task.is_over(0.3)
        monkeypatch.setattr(collecting_controller, "_POLL_SECONDS", 600)  # a reply ends it
        task.is_over(0.1)
        task.answer("south")
        assert task.is_over() and panics == []

    def test_the_run_ends_when_enough_cannot_come_any_more_with_every_reason(self, start, panics):
        task = start(sites=("east", "north", "south", "west"), needed=3, wait=600)
        task.ask("west", claims="north")
        task.answer("west")  # it was accepted at last: no reason for the end
        task.ask("south")
        task.fail("east", ReturnCode.TASK_UNKNOWN)
        task.answer("north", Shareable({"fault": "'bce' must be a number"}))
        assert task.is_over()
        assert panics == [
            "task 'train' of round 3 needs accepted results of 3 of the 4 sites; got 1 "
            "(accepted: west; refused or silent: east: its configuration has no executor for the "
            "task (TASK_UNKNOWN); north: 'bce' must be a number; south: it still had time when "
            "the task ended). Fix the sites, or lower min_clients."
        ]

    @pytest.mark.parametrize("needed", [0, 2])
    def test_all_sites_of_the_job_are_needed_unless_a_number_is_given(self, start, panics, needed):
        """Also one at which FLARE has not started the job."""
        meta = {"deploy_map": {"a": "server", "b": {"sites": ["north"]}, "c": ["south", "@all"]}}
        meta["deploy_map"]["d"] = [{"targets": ["west"]}]  # all forms of FLARE's
        task = start(sites=("north", "south"), needed=needed, meta=meta)
        if needed:
            task.answer("north")
            task.answer("south")
        assert task.is_over()
        assert task.engine.announced[-1] == ("silent", "west", NOT_STARTED)
        collected = task.fl_ctx.get_prop(COLLECTED)
        assert collected["accepted"] == (["north", "south"] if needed else [])
        assert collected["absent"]["west"] == NOT_STARTED
        assert len(panics) == (not needed) and all("3 of the 3 sites; got 0" in p for p in panics)

    def test_while_it_waits_it_logs_for_which_sites_and_how_long(self, start, monkeypatch):
        monkeypatch.setattr(collecting_controller, "_LOG_SECONDS", 0.05)
        lines = []
        monkeypatch.setattr(Workflow, "log_info", lambda self, _, text: lines.append(text))
        of = r"task 'train' of round 3 waits for"

        def logged(pattern):
            deadline = time.monotonic() + SECONDS
            while not any(re.match(pattern, line) for line in [*lines]):
                assert time.monotonic() < deadline, lines
                time.sleep(0.02)

        task = start(needed=2, wait=600)
        task.answer("north")
        logged(rf"{of} south, west, for \d+ s now; 1 of the 2 ")
        task.answer("south")
        logged(rf"{of} west, for \d+ s .* are accepted; up to \d+ s more$")

    def test_a_site_that_is_gone_or_has_ended_is_not_waited_for(self, start, panics, monkeypatch):
        task = start(needed=1, wait=600)
        task.answer("north")
        monkeypatch.setattr(task.controller, "get_client_disconnect_time", {"south": 1.0}.get)
        assert not task.is_over(0.1)
        gone(task, "west")
        assert task.is_over() and panics == []
        reasons = {"south": "its job process has ended", "west": "no heartbeat"}
        assert task.engine.announced == [("silent", *reason) for reason in reasons.items()]

    def test_without_the_filters_that_guard_it_no_task_is_sent(self, start, panics):
        bare = runner()
        bare.config.task_data_filters = {}
        task = start(runner=bare)
        assert task.is_over() and task.task.schedule_time is None
        needed = "task 'train' needs SelectHead among the server's filters; the job lists []."
        assert panics == [needed]

    def test_an_abort_ends_it_without_a_word(self, start, panics):
        task = start()
        task.signal.trigger(True)
        assert task.is_over() and panics == [] == task.engine.announced

    def test_a_failure_of_the_server_is_reported(self, start, panics):
        task = start(needed=1)
        task.task.before_task_sent_cb = Mock(side_effect=OSError("the disk is full"))
        task.ask("north")
        assert task.is_over()
        assert "the server: the disk is full" in panics[0]


REFUSED = [
    (Shareable({"fault": "no metric"}), "no metric"),
    (Shareable({"raises": True}), "it could not be read (KeyError: 'auroc')"),
    (Shareable({"odd": True}), "it could not be read (TypeError: no file name)"),
    (Shareable({"poor": True}), "the aggregator did not accept it; see the server's log"),
    (make_reply(ReturnCode.UNSAFE_JOB), "its policy considers the job unsafe (UNSAFE_JOB)"),
    (make_reply(["odd"]), "it did not carry out the task (['odd'])"),
    (make_reply("no\n2026"), "it did not carry out the task (no\\n2026)"),
]


class TestResults:
    @pytest.mark.parametrize(("result", "reason"), REFUSED)
    def test_a_bad_one_is_refused_once_and_does_not_count(self, start, result, reason):
        passed = []

        def take(client_task, fl_ctx):
            if client_task.result.get("odd"):
                raise TypeError("no file name")
            good = not client_task.result.get("poor")
            fl_ctx.set_prop(AppConstants.AGGREGATION_ACCEPTED, good, private=True, sticky=False)
            passed.extend([client_task.client.name] * good)

        task = start(needed=2, wait=0, received=take)
        task.answer("west", result)
        task.answer("north")
        assert task.engine.announced == [("refused", "west", reason)] and passed == ["north"]
        assert not task.is_over(0.1)  # the others are waited for
        task.answer("south")
        assert task.is_over()

    def test_what_a_filter_has_refused_is_not_refused_again(self, start):
        task = start()
        announced = {REFUSAL: {"site": "west", "task": "train", "reason": "a class of another"}}
        task.answer("west", make_reply(ReturnCode.EXECUTION_RESULT_ERROR), props=announced)
        assert task.engine.announced == []

    def test_what_was_not_asked_for_is_refused_and_no_reason_for_an_end(self, start, panics):
        task = start(needed=3, wait=600)
        task.answer("west", task_id="of the round before")
        late = "it came after its task was over, or belongs to no task"
        assert task.engine.announced == [("refused", "west", late)]
        task.fail("west", ReturnCode.EXECUTION_EXCEPTION)
        assert task.is_over()
        assert "west: the task failed there; see its own log" in panics[0] and late not in panics[0]

    def test_what_could_not_be_read_is_tried_again_once(self, start, panics):
        task = start(needed=3, wait=600)
        unread = make_reply(ReturnCode.EXECUTION_RESULT_ERROR, {UNREADABLE: "BadZipFile: odd"})
        refused = ("refused", "west", "it could not be read (BadZipFile: odd)")
        task.answer("west", unread, task_id="not known")
        assert task.engine.announced == [refused] and not task.is_over(0.1)
        task.answer("north", unread, task_id="not known")
        task.answer("north")  # which counts
        task.answer("west", unread, task_id="not known")
        assert task.is_over() and "got 1 (accepted: north; refused or silent: south" in panics[0]
        assert "west: it could not be read (BadZipFile: odd)" in panics[0]

    def test_while_one_is_taken_nothing_is_decided(self, start, panics):
        began, go_on = threading.Event(), threading.Event()

        def take(client_task, fl_ctx):
            began.set()
            go_on.wait(10)

        task = start(needed=2, wait=600, received=take)
        task.fail("west", ReturnCode.EXECUTION_EXCEPTION)
        answers = threading.Thread(target=lambda: [task.answer(s) for s in ("north", "south")])
        answers.start()
        assert began.wait(10)
        gone(task, "north")
        assert not task.is_over(0.3)  # its result is being taken
        go_on.set()
        answers.join()
        assert task.is_over() and panics == []


class TestIdentity:
    @pytest.mark.parametrize("with_result", [False, True])
    def test_other_classes_are_refused_when_a_site_asks_and_with_a_result(self, start, with_result):
        task = start()
        task_id, _ = task.ask("west", classes=["Edema"])
        if with_result:
            task.answer("west", task_id=task_id, classes=["Mass"])
        else:
            task.ask("west", classes=["Mass"])
        ((_, site, reason),) = task.engine.announced
        assert site == "west" and reason.startswith("it declares ['Mass'], but declared")

    def test_the_reason_of_a_long_declaration_is_short(self, start):
        task = start(needed=2)
        task.ask("west", classes=["Edema"])
        task.ask("west", classes=["x" * 10**6])
        assert 0 < len(task.controller._status.reasons["west"]) < 2_000

    def test_who_passes_for_another_is_refused_under_its_own_name(self, start, panics):
        task = start(needed=2, wait=600)
        for _ in range(5):
            _, fl_ctx = task.ask("west", claims="north")
        assert site_of(fl_ctx) == "west"  # so filters learn whom the task is for
        refused = ("refused", "west", "it calls itself 'north'")
        request = ("request_refused", *refused[1:])
        assert task.engine.announced == [request]  # once
        task.answer("west", claims="north")
        assert task.engine.announced == [request, refused]
        task.answer("north")  # the victim is waited for
        task.answer("south")
        assert task.is_over()


SITES = ("east", "north", "south", "west")


def test_the_others_are_waited_for_from_the_last_needed_result_on_unless_none_is_coming():
    it = TaskStatus("train", 3, SITES, needed=2, wait=10.0)
    it.accept("north", now=100.0)
    assert it.verdict(now=1000.0) == "open"
    it.accept("south", now=1000.0)
    assert it.verdict(now=1000.0, gone=["east", "west"]) == "enough"
    it.accept("west", now=1004.0)
    assert it.verdict(now=1009.9) == "open"
    assert it.verdict(now=1010.0) == "enough"
    it.failed.add("east")
    assert it.verdict(now=1009.9) == "enough"


def test_a_site_that_is_back_in_time_is_waited_for_again():
    it = TaskStatus("check", None, SITES, 3, wait=5, wait_for_all=True)
    it.accept("north", now=0)
    assert it.verdict(10, ["east", "south"]) == "open"  # for the reason of the west
    assert it.verdict(16) == "open" and it.verdict(17, ["east", "south"]) == "open"
    assert it.verdict(22, ["east", "south"]) == "too few"


@pytest.mark.parametrize("wait_for_all", [True, False])
def test_where_too_few_are_left_the_others_are_heard_if_asked_for_but_not_for_ever(wait_for_all):
    it = TaskStatus("check", None, SITES, 4, wait=5, wait_for_all=wait_for_all)
    it.failed.add("east")
    heard = "open" if wait_for_all else "too few"
    assert [it.verdict(now) for now in (10, 14, 15)] == [heard, heard, "too few"]
    assert it.verdict(16, ["north", "south", "west"]) == "too few"
