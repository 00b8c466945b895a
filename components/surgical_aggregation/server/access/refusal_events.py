"""Events for results that are left out: logged, and fired for whoever keeps the run's record."""

from __future__ import annotations

from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_context import FLContext

from surgical_aggregation.wire import headers
from surgical_aggregation.wire.untrusted_text import one_line

_SAID = {
    headers.CONTRIBUTION_REFUSED: "refused the result of",
    headers.REQUEST_REFUSED: "sent no columns at the request of",
    headers.SITE_SILENT: "no result of",
}


def announce(
    component: FLComponent,
    fl_ctx: FLContext,
    site: str,
    task: str,
    round_: int | None,
    reason: str,
    event: str = headers.CONTRIBUTION_REFUSED,
) -> None:
    """Log that a result is left out whole, or never came, and fire the event with `REFUSAL`.

    Args:
        component: Logs and fires.
        fl_ctx: Context of the message.
        site: The authenticated one.
        task: Name of the task.
        round_: None for an evaluation.
        reason: Without a full stop; it may be the site's own words, so it is kept as `one_line`.
        event: CONTRIBUTION_REFUSED: a result is refused. REQUEST_REFUSED: a site that asks for a
            task gets no columns. SITE_SILENT: a result never came.
    """
    task, reason = one_line(str(task)), one_line(reason)
    of_round = "" if round_ is None else f" of round {round_}"
    component.log_warning(fl_ctx, f"{_SAID[event]} {site}, task {task!r}{of_round}: {reason}.")
    refusal = {"site": site, "task": task, "round": round_, "reason": reason}
    fl_ctx.set_prop(headers.REFUSAL, refusal, private=True, sticky=False)
    component.fire_event(event, fl_ctx)
