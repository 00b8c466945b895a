"""What server-side filters have in common that keep to a table of permitted classes."""

from __future__ import annotations

from nvflare.apis.event_type import EventType
from nvflare.apis.filter import Filter
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext

from surgical_aggregation.aggregation.class_names import twins
from surgical_aggregation.server.access.declared_classes import permitted_classes
from surgical_aggregation.server.access.server_policy import Table, tables
from surgical_aggregation.site.contract.site_policy import PolicyError


class PermittedFilter(Filter):
    """A filter that asks for each site which classes it may hold.

    A table that is not usable ends the run with the reason when it starts; until it has ended, no
    site may hold anything. So does one that spells a class in two ways: one of its sites would be
    refused in every round.

    Args:
        permitted: The job's table; the server's own policy holds as well.
    """

    def __init__(self, permitted: Table | None = None):
        super().__init__()
        self.permitted = permitted

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Look at the tables when the run starts."""
        ended = fl_ctx.get_prop(FLContextKey.FATAL_SYSTEM_ERROR)  # by another such filter
        if event_type != EventType.START_RUN or ended:
            return
        try:
            for table in tables(fl_ctx, self.permitted):
                if pair := twins(name for classes in table.values() for name in classes):
                    raise PolicyError(
                        f"a table of permitted classes has {pair[0]!r} and {pair[1]!r}, which are "
                        "one class spelt twice. Spell it in one way for all sites."
                    )
        except PolicyError as error:
            self.system_panic(str(error), fl_ctx)

    def permitted_classes(self, fl_ctx: FLContext) -> tuple[str, ...]:
        """Classes that the site of a message has declared and may hold.

        Args:
            fl_ctx: Context of a message from or to the site.
        """
        try:
            return permitted_classes(fl_ctx, self.permitted)
        except PolicyError:  # the run is being ended with the reason
            return ()
