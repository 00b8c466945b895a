"""Server-side task-data filter: a site gets the body and its own columns, nothing else."""

from __future__ import annotations

from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable

from surgical_aggregation.server.access.permitted_filter import PermittedFilter
from surgical_aggregation.server.access.server_policy import Table
from surgical_aggregation.server.access.site_identity import site_of
from surgical_aggregation.server.models.global_model import BEST_ROUND
from surgical_aggregation.wire import variables as wire


class SelectHead(PermittedFilter):
    """Send a site the body and its own columns, nothing else.

    Runs on the server, on task data, once per receiving site; list it for every task that carries a
    model:

        in   body variables, head/<class>/... for every class the server knows
        out  body variables, head/<class>/... for the classes the receiving site declared

    What comes in is one object for all sites, so what goes out is new, arrays included. Meta does
    not go out. The header BEST_ROUND is added where there is a best model. A site that has declared
    no classes gets the body alone, and data that is not a model is withheld; the server's log says
    so. Never raises: that would end the round for every site.

    Args:
        permitted: Site -> classes that it may hold. Default None: a site is believed what it
            declares. Give the same table as to `CheckResult` where sites are not trusted that far,
            or let the server's own policy say it for all jobs; see `server_policy`.
    """

    def __init__(self, permitted: Table | None = None):
        super().__init__(permitted)

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        """Cut the task's model down to what the receiving site may see."""
        site = site_of(fl_ctx)
        try:
            body, columns = wire.split(wire.weights(shareable).data)
        except wire.WireError as error:
            self.log_error(fl_ctx, f"sent {site} an empty model, for the task has none: {error}")
            return DXO(DataKind.WEIGHTS, data={}).update_shareable(shareable)
        held = self.permitted_classes(fl_ctx)
        if columns and not held:
            self.log_error(
                fl_ctx,
                f"{site} has declared no permitted classes, so it gets the body alone. "
                "Is DeclareClasses among the components of its client configuration?",
            )
        own = {name: columns[name] for name in held if name in columns}
        data = {name: value.copy() for name, value in wire.join(body, own).items()}
        best = fl_ctx.get_prop(BEST_ROUND)
        if best is not None:
            shareable.set_header(BEST_ROUND, best)
        return DXO(DataKind.WEIGHTS, data=data).update_shareable(shareable)
