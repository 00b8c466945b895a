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


def announce(component: FLComponent, refusal: Refusal, fl_ctx: FLContext) -> None:
    """Log that a result is refused, and fire CONTRIBUTION_REFUSED."""
    component.log_warning(fl_ctx, f"refused the result of {refusal}")
    _fire(component, headers.CONTRIBUTION_REFUSED, refusal, fl_ctx)


def announce_request(component: FLComponent, refusal: Refusal, fl_ctx: FLContext) -> None:
    """Log that a site that asks for a task gets no columns, and fire REQUEST_REFUSED."""
    component.log_warning(fl_ctx, f"sent no columns at the request of {refusal}")
    _fire(component, headers.REQUEST_REFUSED, refusal, fl_ctx)


def announce_silence(component: FLComponent, refusal: Refusal, fl_ctx: FLContext) -> None:
    """Log that a result never came, and fire SITE_SILENT."""
    component.log_warning(fl_ctx, f"no result of {refusal}")
    _fire(component, headers.SITE_SILENT, refusal, fl_ctx)


def _fire(component: FLComponent, event: str, refusal: Refusal, fl_ctx: FLContext) -> None:
    fl_ctx.set_prop(headers.REFUSAL, asdict(refusal), private=True, sticky=False)
    component.fire_event(event, fl_ctx)


def drop_round(component: FLComponent, round_: int, reason: str, fl_ctx: FLContext) -> None:
    """Log that a whole round is left out, and fire ROUND_DROPPED."""
    component.log_error(fl_ctx, f"round {round_} is dropped: {reason}", fire_event=False)
    drop = {"round": round_, "reason": reason}
    fl_ctx.set_prop(headers.DROP, drop, private=True, sticky=False)
    component.fire_event(headers.ROUND_DROPPED, fl_ctx)
