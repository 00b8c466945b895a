"""Events for what is left out of a run: logged, and fired for whoever keeps the run's record."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_context import FLContext

from surgical_aggregation.wire import headers
from surgical_aggregation.wire.untrusted_text import one_line


@dataclass(frozen=True)
class Refusal:
    """A result that was left out whole, or never came.

    The site is the authenticated one; round is None for an evaluation; the reason has no full stop
    and may be the site's own words, so it is kept as `one_line`.
    """

    site: str
    task: str
    round: int | None
    reason: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", one_line(self.reason))
        object.__setattr__(self, "task", one_line(str(self.task)))

    def __str__(self) -> str:
        of_round = "" if self.round is None else f" of round {self.round}"
        return f"{self.site}, task {self.task!r}{of_round}: {self.reason}."


_SAID = {
    headers.CONTRIBUTION_REFUSED: "refused the result of",
    headers.REQUEST_REFUSED: "sent no columns at the request of",
    headers.SITE_SILENT: "no result of",
}


def announce(
    component: FLComponent,
    refusal: Refusal,
    fl_ctx: FLContext,
    event: str = headers.CONTRIBUTION_REFUSED,
) -> None:
    """Log a refusal, and fire its event.

    Args:
        component: Logs and fires.
        refusal: What is refused.
        fl_ctx: Context of the message.
        event: CONTRIBUTION_REFUSED: a result is refused. REQUEST_REFUSED: a site that asks for a
            task gets no columns. SITE_SILENT: a result never came.
    """
    component.log_warning(fl_ctx, f"{_SAID[event]} {refusal}")
    fl_ctx.set_prop(headers.REFUSAL, asdict(refusal), private=True, sticky=False)
    component.fire_event(event, fl_ctx)


def drop_round(component: FLComponent, round_: int, reason: str, fl_ctx: FLContext) -> None:
    """Log that a whole round is left out, and fire ROUND_DROPPED."""
    component.log_error(fl_ctx, f"round {round_} is dropped: {reason}", fire_event=False)
    fl_ctx.set_prop(headers.DROP, {"round": round_, "reason": reason}, private=True, sticky=False)
    component.fire_event(headers.ROUND_DROPPED, fl_ctx)
