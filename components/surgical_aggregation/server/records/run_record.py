"""The run's record: what happened in a job, one JSON line per event."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.fl_exception import NotReadyToEndRun
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.widgets.info_collector import InfoCollector

from surgical_aggregation import FlareError, __version__
from surgical_aggregation import __file__ as code_file
from surgical_aggregation.server.access.job_sites import not_started, site_of, sites_of_job
from surgical_aggregation.server.models.model_files import job_folder
from surgical_aggregation.wire import flare_internals, headers, results
from surgical_aggregation.wire.allow_list import AllowListError, check_allow_list
from surgical_aggregation.wire.untrusted_text import error_kind, one_line

RECORD_FILE = "run_record.jsonl"

_EVENTS = {
    headers.REQUEST_REFUSED: ("request_refused", headers.REFUSAL),
    headers.SITE_SILENT: ("silent", headers.REFUSAL),
    headers.ROUND_DROPPED: ("dropped", headers.DROP),
    headers.SITE_CHECKED: ("declared", headers.DECLARED),
    headers.LOOK_ALIKE: ("look_alike", headers.ALIKE),
    headers.BEST_DROPPED: ("best_dropped", headers.DROPPED),
    AppEventType.GLOBAL_BEST_MODEL_AVAILABLE: ("best", headers.BEST),
    headers.TRAINING_STOPPED: ("stopped", headers.STOPPED),
}
"""Event -> name of its line, and the context property with the line's facts."""

MAX_LINES = 10
"""Number of refusals of a site's results to one task that get a line each."""


class RunRecord(FLComponent):
    """Write a record of the run, one JSON line per event, with what FLARE's artifacts lack.

    Runs on the server and writes run_record.jsonl into the job's workspace, flushed after every
    line. Metrics are in FLARE's `metrics/` (MetricsArtifactWriter) and `cross_site_val/`. Lines are

        {"event": "started", "version", "code"}
        {"event": "sites", "job", "deployed"}
        {"event": "declared", "site", "date", "versions", "classes", "free_disk",
            "certificate_days", "reason"}
        {"event": "refused", "site", "task", "round", "reason"}
        {"event": "refused_too", "site", "task", "round", "count"}
        {"event": "request_refused", "site", "task", "round", "reason"}
        {"event": "silent", "site", "task", "round", "reason"}
        {"event": "dropped", "round", "reason"}
        {"event": "filtered", "site", "filter"}
        {"event": "look_alike", "classes", "reason"}
        {"event": "best", "round", "metric", "value", "sites", "classes", "columns"[, "candidate"]}
        {"event": "best_dropped", "reason"}
        {"event": "round", "round", "seconds", "column_similarity", "accepted", "absent"}
        {"event": "stopped", "round", "best_round", "patience"}
        {"event": "failed", "reason", "kind", "began"}
        {"event": "ended", "seconds", "owing"}

    with these facts:

        sites            "job": all sites of the job; "deployed": those where FLARE has started it
        declared         a site's reply to `SiteCheck`: its declaration, the free bytes of its disk,
                         the days until its certificate expires, and why it cannot participate; null
                         if unknown or if it can
        refused          the first `MAX_LINES` refused results of a site to one task; "refused_too"
                         counts the others when the task ends. "round" is null in an evaluation
        request_refused  a site was sent no columns when it requested the task; its result may still
                         be averaged
        filtered         a filter that FLARE names in an accepted result of the site, once
        best             a resumed run repeats the earlier run's best model
        round            "accepted": sites whose results were accepted; "absent": {other site of the
                         job: reason}; both are logged. "column_similarity": {class: mean cosine
                         similarity of the sites' columns}. A dropped round has this line, too
        stopped          precedes the "round" line of the last round
        failed           "kind": kind of the error that a server component raised (`error_kind`),
                         else null; "began": whether a round had begun
        ended            "owing": {site: task that it has not returned; "start": it requested none}

    The admin command for the running job's statistics, which any admin may give, shows {"rounds":
    number done, "best": {"round", "metric", "value"} of the best model or None, "stopped": bool}.

    Ends the run if the server's allow-list is too wide (see `wire.allow_list`), if FLARE lacks a
    name that is needed, or if any server component raises in an event, which FLARE would only log
    before it reports the job as completed.
    """

    def __init__(self) -> None:
        super().__init__()
        self._path: Path | None = None
        self._written: Counter[str] = Counter()
        self._best: dict[str, Any] | None = None
        self._refusals: Counter[tuple[str, str, int | None]] = Counter()
        self._filters: set[tuple[str, str]] = set()
        self._raised: Exception | None = None
        self._owing: dict[str, str] = {}
        self._run_began = 0.0
        self._round_began = 0.0

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Append the event's line, if it has one; end the run if a component has raised."""
        if event_type == EventType.START_RUN:
            self._path = job_folder(fl_ctx) / RECORD_FILE
            self._run_began = time.monotonic()
            folder = str(Path(code_file).parent)
            self.log_info(fl_ctx, f"surgical-aggregation {__version__} from {folder}")
            self._write("started", version=__version__, code=folder)
            sites, absent = sites_of_job(fl_ctx), not_started(fl_ctx)
            started = [site for site in sites if site not in absent]
            self._owing = dict.fromkeys(started, "start")
            self._write("sites", job=sites, deployed=started)
            self._log_sites("the job has started at", fl_ctx, started, absent)
            try:
                flare_internals.check_names()
                check_allow_list(fl_ctx)
            except (FlareError, AllowListError) as error:
                self.system_panic(str(error), fl_ctx)
        elif event_type == headers.CONTRIBUTION_REFUSED:
            self._refused(fl_ctx.get_prop(headers.REFUSAL))
        elif event_type in _EVENTS:
            event, facts = _EVENTS[event_type]
            self._write(event, **fl_ctx.get_prop(facts))
        elif event_type == AppEventType.INITIAL_MODEL_LOADED and fl_ctx.get_prop(headers.BEST):
            self._write("best", **fl_ctx.get_prop(headers.BEST))
        elif event_type == AppEventType.AFTER_CONTRIBUTION_ACCEPT:
            if fl_ctx.get_prop(AppConstants.AGGREGATION_ACCEPTED):
                self._filtered(site_of(fl_ctx), results.current(fl_ctx).filters)
        elif event_type == AppEventType.ROUND_STARTED:
            self._round_began = time.monotonic()
        elif event_type == AppEventType.ROUND_DONE:
            self._count_refusals()
            round_ = fl_ctx.get_prop(AppConstants.CURRENT_ROUND)
            collected = fl_ctx.get_prop(headers.COLLECTED, {})
            self._write(
                "round",
                round=round_,
                seconds=round(time.monotonic() - self._round_began, 3),
                column_similarity=fl_ctx.get_prop(headers.COLUMN_SIMILARITY, {}),
                **collected,
            )
            if collected:
                self._log_sites(f"round {round_}: results of", fl_ctx, **collected)
        elif event_type == EventType.AFTER_TASK_DATA_FILTER and site_of(fl_ctx):
            self._owing[site_of(fl_ctx)] = fl_ctx.get_prop(FLContextKey.TASK_NAME)
        elif event_type == EventType.BEFORE_TASK_RESULT_FILTER:
            self._owing.pop(site_of(fl_ctx), None)
        elif event_type == EventType.FATAL_SYSTEM_ERROR:
            reason = str(fl_ctx.get_prop(FLContextKey.EVENT_DATA))
            kind = self._raised and error_kind(self._raised)
            self._write("failed", reason=reason, kind=kind, began=self._round_began > 0)
        elif event_type == EventType.END_WORKFLOW:
            self._count_refusals()
        elif event_type == EventType.END_RUN:
            seconds = round(time.monotonic() - self._run_began, 3)
            self._write("ended", seconds=seconds, owing=dict(self._owing))
        elif event_type == InfoCollector.EVENT_TYPE_GET_STATS:
            collector = fl_ctx.get_prop(InfoCollector.CTX_KEY_STATS_COLLECTOR)
            stopped = self._written["stopped"] > 0
            done = {"rounds": self._written["round"], "best": self._best, "stopped": stopped}
            collector.set_info(type(self).__name__, done)
        for name, raised in dict(fl_ctx.get_prop(FLContextKey.EXCEPTIONS, {})).items():
            if not self._raised and not isinstance(raised, NotReadyToEndRun):
                self._raised = raised  # only once: it may raise again at the end of the run
                self.system_panic(f"{name} failed: {type(raised).__name__}: {raised}", fl_ctx)

    def _log_sites(
        self, what: str, fl_ctx: FLContext, accepted: Sequence[str], absent: Mapping[str, str]
    ) -> None:
        missing = "; ".join(f"{site} ({reason})" for site, reason in absent.items())
        log = self.log_warning if missing else self.log_info
        log(fl_ctx, f"{what} {', '.join(accepted) or 'no site'}; without {missing or 'none'}")

    def _filtered(self, site: str, names: Sequence[str]) -> None:
        for name in map(one_line, names[:MAX_LINES]):
            if (site, name) not in self._filters:
                self._filters.add((site, name))
                self._write("filtered", site=site, filter=name)

    def _refused(self, refusal: dict[str, Any]) -> None:
        key = (refusal["site"], refusal["task"], refusal["round"])
        self._refusals[key] += 1
        if self._refusals[key] <= MAX_LINES:
            self._write("refused", **refusal)

    def _count_refusals(self) -> None:
        """Write how many refusals got no line since the last call."""
        counted, self._refusals = self._refusals, Counter()
        for (site, task, round_), count in counted.copy().items():
            if (more := count - MAX_LINES) > 0:
                self._write("refused_too", site=site, task=task, round=round_, count=more)

    def _write(self, event: str, **facts: Any) -> None:
        if self._path is None:  # an event of a run that never started
            return
        self._written[event] += 1
        if event in ("best", "best_dropped"):
            shown = ("round", "metric", "value")  # no site and no class
            self._best = {name: facts.get(name) for name in shown} if event == "best" else None
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"event": event, **facts}, ensure_ascii=False) + "\n")
