"""Log results that are left out, and fire events for the run's record."""

from __future__ import annotations

from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_context import FLContext

from surgical_aggregation.wire import headers
from surgical_aggregation.wire.untrusted_text import one_line

_ACTION = {
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
    """Log that a result is left out or missing, and fire the event with `REFUSAL`.

    Args:
        component: The component that logs and fires.
        fl_ctx: Context of the message.
        site: Authenticated name of the site.
        task: Name of the task.
        round_: The round; None for an evaluation.
        reason: Text without a full stop. It may come from the site, so it is passed to `one_line`.
        event: CONTRIBUTION_REFUSED (default): a result is refused. REQUEST_REFUSED: a site that
            requests a task gets no columns. SITE_SILENT: the site sent no result.
    """
    task, reason = one_line(str(task)), one_line(reason)
    of_round = "" if round_ is None else f" of round {round_}"
    component.log_warning(fl_ctx, f"{_ACTION[event]} {site}, task {task!r}{of_round}: {reason}.")
    refusal = {"site": site, "task": task, "round": round_, "reason": reason}
    fl_ctx.set_prop(headers.REFUSAL, refusal, private=True, sticky=False)
    component.fire_event(event, fl_ctx)
