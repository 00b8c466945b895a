"""Saying that a site's result was refused: in the log, and to whoever keeps the run's record."""

from dataclasses import asdict, dataclass

from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_context import FLContext

from surgical_aggregation.one_line import one_line

CONTRIBUTION_REFUSED = "surgical.contribution_refused"
"""Event fired on the server, with the refusal under `REFUSAL` in the context."""

REFUSAL = "surgical.refusal"


@dataclass(frozen=True)
class Refusal:
    """A result that was left out whole.

    Attributes:
        site: Who sent it.
        round: The round that was running.
        reason: What was wrong with it, in words, which may be the site's: kept as `one_line`.
    """

    site: str
    round: int
    reason: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", one_line(self.reason))


def announce(component: FLComponent, refusal: Refusal, fl_ctx: FLContext) -> None:
    """Log a refusal and tell the other server components."""
    component.log_warning(
        fl_ctx, f"refused the result of {refusal.site} in round {refusal.round}: {refusal.reason}."
    )
    fl_ctx.set_prop(REFUSAL, asdict(refusal), private=True, sticky=False)
    component.fire_event(CONTRIBUTION_REFUSED, fl_ctx)
