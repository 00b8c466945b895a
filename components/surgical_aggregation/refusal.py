"""Saying that a result or a round was refused: in the log, and to whoever keeps the record."""

from dataclasses import asdict, dataclass, replace

from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_context import FLContext

CONTRIBUTION_REFUSED = "surgical.contribution_refused"
"""Event fired on the server, with the refusal under `REFUSAL` in the context."""

REFUSAL = "surgical.refusal"

ROUND_DROPPED = "surgical.round_dropped"
"""Event fired on the server, with {"round", "reason"} under `DROP` in the context."""

DROP = "surgical.drop"

LONGEST = 2000
"""Characters of a reason; it may hold what a site sent."""


@dataclass(frozen=True)
class Refusal:
    """A result that was left out whole.

    Attributes:
        site: Who sent it.
        round: The round that was running.
        reason: What was wrong with it, in words.
    """

    site: str
    round: int
    reason: str


def announce(component: FLComponent, refusal: Refusal, fl_ctx: FLContext) -> None:
    """Log a refusal and tell the other server components; a reason is cut at `LONGEST`."""
    if len(refusal.reason) > LONGEST:
        refusal = replace(refusal, reason=f"{refusal.reason[:LONGEST]} ...")
    component.log_warning(
        fl_ctx, f"refused the result of {refusal.site} in round {refusal.round}: {refusal.reason}."
    )
    fl_ctx.set_prop(REFUSAL, asdict(refusal), private=True, sticky=False)
    component.fire_event(CONTRIBUTION_REFUSED, fl_ctx)


def drop_round(component: FLComponent, round_: int, reason: str, fl_ctx: FLContext) -> None:
    """Log that a whole round is left out, and tell the other server components."""
    component.log_error(fl_ctx, f"round {round_} is dropped: {reason}", fire_event=False)
    drop = {"round": round_, "reason": reason}
    fl_ctx.set_prop(DROP, drop, private=True, sticky=False)
    component.fire_event(ROUND_DROPPED, fl_ctx)
