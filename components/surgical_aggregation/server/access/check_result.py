"""Server-side result filter: a site may speak only for the classes that it declared."""

from __future__ import annotations

from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import ReturnCode, Shareable, make_reply
from nvflare.app_common.app_constant import AppConstants

from surgical_aggregation.server.access.declared_classes import declaration_fault, declared_classes
from surgical_aggregation.server.access.permitted_filter import PermittedFilter
from surgical_aggregation.server.access.refusal import Refusal, announce
from surgical_aggregation.server.access.server_policy import Table
from surgical_aggregation.server.access.site_identity import site_of
from surgical_aggregation.wire import variables as wire


class CheckResult(PermittedFilter):
    """Refuse a training result with columns that its site has not declared or may not teach.

    Or one of a site that passes for another, or has declared other classes before.

    Runs on the server, on the result of the training task, ahead of any aggregator:

        in   a site's result
        out  the same, or a reply EXECUTION_RESULT_ERROR, which the workflow counts as that site's
             failure (the round goes on while `min_clients` can still be reached)

    Never raises. Whether the values are fit to be averaged is the aggregator's check.

    Args:
        permitted: Site -> classes that it may teach. Default None: what it declares. With a table,
            a site that is not in it may teach nothing. The server's own policy holds as well; see
            `server_policy`.
    """

    def __init__(self, permitted: Table | None = None):
        super().__init__(permitted)

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        """Pass the result, or put an error reply in its place."""
        if shareable.get_return_code() != ReturnCode.OK:
            return shareable
        reason = self._reason(shareable, fl_ctx)
        if reason is None:
            return shareable
        task, round_ = map(fl_ctx.get_prop, (FLContextKey.TASK_NAME, AppConstants.CURRENT_ROUND))
        announce(self, Refusal(site_of(fl_ctx), task, round_, reason), fl_ctx)
        return make_reply(ReturnCode.EXECUTION_RESULT_ERROR)

    def _reason(self, shareable: Shareable, fl_ctx: FLContext) -> str | None:
        if reason := declaration_fault(fl_ctx):
            return reason
        try:
            sent = set(wire.classes_of(wire.result(shareable).data))
        except Exception as error:  # whatever a site sends
            return f"it could not be read ({type(error).__name__}: {error})"
        declared = set(declared_classes(fl_ctx))
        if sent != declared:
            return (
                f"it must hold the declared classes {sorted(declared)}; "
                f"undeclared {sorted(sent - declared)}, missing {sorted(declared - sent)}"
            )
        if beyond := sent - set(self.permitted_classes(fl_ctx)):
            return f"the site is not permitted to teach {sorted(beyond)}"
        return None
