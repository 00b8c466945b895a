"""The server's filters: which classes a site gets, and for which it may send columns.

And which workflows must have them.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from nvflare.apis.dxo import DXO, DataKind
from nvflare.apis.event_type import EventType
from nvflare.apis.filter import Filter
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import ReturnCode, Shareable, make_reply
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.workflows.base_model_controller import BaseModelController

from surgical_aggregation.aggregation.averaging import Array
from surgical_aggregation.aggregation.class_names import twins
from surgical_aggregation.server.access import job_sites
from surgical_aggregation.server.access.job_sites import Table, permitted_classes, site_of
from surgical_aggregation.server.access.refusal_events import announce
from surgical_aggregation.wire import flare_internals, headers, privacy_json
from surgical_aggregation.wire import variables as wire


class PermittedFilter(Filter):
    """A filter that knows which classes each site may train.

    Runs on the server. An unusable table, or one with two spellings of a class, ends the run with
    the reason at its start; until then no site may train any class.

    Args:
        permitted: Site -> classes that it may train. Default None: what a site declares. With a
            table, a site that is not in it may train none. The server's own policy applies as well;
            see `tables`.
    """

    def __init__(self, permitted: Table | None = None):
        super().__init__()
        self.permitted = permitted

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Check the tables when the run starts."""
        ended = fl_ctx.get_prop(FLContextKey.FATAL_SYSTEM_ERROR)  # by another such filter
        if event_type != EventType.START_RUN or ended:
            return
        try:
            for table in job_sites.tables(fl_ctx, self.permitted):
                if pair := twins(name for classes in table.values() for name in classes):
                    raise privacy_json.PolicyError(
                        f"a table of permitted classes has {pair[0]!r} and {pair[1]!r}, which are "
                        "one class spelt twice. Spell it in one way for all sites."
                    )
        except privacy_json.PolicyError as error:
            self.system_panic(str(error), fl_ctx)

    def site(self, fl_ctx: FLContext) -> str:
        """The site of a message; where that is not known, the run ends: no guess may be made."""
        site = site_of(fl_ctx)
        if not site:
            self.system_panic(
                f"{type(self).__name__} must know which site a message is of, and FLARE does not "
                "say it here. Have it filter tasks that a workflow sends, such as FederatedTraining"
                " or FLARE's FedAvg.",
                fl_ctx,
            )
        return site


class SelectHead(PermittedFilter):
    """Send a site the body and the columns of its own classes, nothing else.

    Runs on the server, on task data, once per receiving site; list it for every task that carries a
    model:

        in   body variables, head/<class>/... for every class the server knows
        out  body variables, head/<class>/... for the classes the receiving site declared

    The dict is new, and the arrays in it are those that all sites share, as views that nobody can
    write to: FLARE encodes them when the site fetches them. Meta does not go out. Adds the header
    BEST_ROUND where there is a best model. A site that has declared no classes gets the body alone,
    and data that is not a model is withheld; the server's log says so. Where it is not known which
    site receives, nothing is sent and the run ends. Never raises: that would end the round for
    every site.

    Args:
        permitted: See `PermittedFilter`; give `CheckResult` the same table. Default None.
    """

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        """Cut the task's model down to what the receiving site may see."""
        site = self.site(fl_ctx)
        data = self._selected(site, shareable, fl_ctx) if site else {}
        return DXO(DataKind.WEIGHTS, data=data).update_shareable(shareable)

    def _selected(self, site: str, shareable: Shareable, fl_ctx: FLContext) -> dict[str, Array]:
        try:
            variables = wire.weights(shareable).data
            class_of = {name: wire.class_of(name) for name in variables}
        except wire.WireError as error:
            self.log_error(fl_ctx, f"sent {site} an empty model, for the task has none: {error}")
            return {}
        own = {None, *permitted_classes(fl_ctx, self.permitted)}
        if len(own) == 1 and any(class_of.values()):
            self.log_error(
                fl_ctx,
                f"{site} has declared no permitted classes, so it gets the body alone. "
                "Is DeclareClasses among the components of its client configuration?",
            )
        best = fl_ctx.get_prop(headers.BEST_ROUND)
        if best is not None:
            shareable.set_header(headers.BEST_ROUND, best)
        # views that nobody can write to
        return {n: np.broadcast_to(v, v.shape) for n, v in variables.items() if class_of[n] in own}


class CheckResult(PermittedFilter):
    """Refuse a training result whose columns are not the classes its site declared and may train.

    Also refuses a site that passes for another, or has declared other classes before.

    Runs on the server, on the result of the training task, ahead of any aggregator:

        in   a site's result
        out  the same, or a reply EXECUTION_RESULT_ERROR, which the workflow counts as that site's
             failure (the round goes on while `min_clients` can still be reached)

    Never raises. Values are the aggregator's check.

    Args:
        permitted: See `PermittedFilter`. Default None.
    """

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        """Pass the result, or put an error reply in its place."""
        if shareable.get_return_code() != ReturnCode.OK:
            return shareable
        site = self.site(fl_ctx)
        reason = self._reason(shareable, fl_ctx) if site else "it is not known whose it is"
        if reason is None:
            return shareable
        task, round_ = map(fl_ctx.get_prop, (FLContextKey.TASK_NAME, AppConstants.CURRENT_ROUND))
        announce(self, fl_ctx, site, task, round_, reason)
        return make_reply(ReturnCode.EXECUTION_RESULT_ERROR)

    def _reason(self, shareable: Shareable, fl_ctx: FLContext) -> str | None:
        if reason := job_sites.declaration_fault(fl_ctx):
            return reason
        try:
            sent = set(wire.classes_of(wire.result(shareable).data))
        except Exception as error:  # whatever a site sends
            return f"it could not be read ({type(error).__name__}: {error})"
        declared = set(job_sites.declared_classes(fl_ctx))
        if sent != declared:
            return (
                f"it must have the declared classes {sorted(declared)}; "
                f"undeclared {sorted(sent - declared)}, missing {sorted(declared - sent)}"
            )
        return job_sites.unpermitted(fl_ctx, self.permitted)


TRAINED: frozenset[type[Filter]] = frozenset({SelectHead, CheckResult})
"""Guards of a task whose results are models."""


def model_controllers(fl_ctx: FLContext) -> list[BaseModelController]:
    """The job's workflows of FLARE's newer kind, as its FedAvg is; none where it has no such."""
    workflows = flare_internals.workflows(fl_ctx)
    return [workflow for workflow in workflows if isinstance(workflow, BaseModelController)]


def lacking_guards(task: str, guards: Collection[type[Filter]], fl_ctx: FLContext) -> str | None:
    """Why a task must not be sent: it lacks some of the server's filters; None: it has them."""
    passed = flare_internals.server_filters(task, fl_ctx)
    if passed is None or set(guards) <= {type(one) for one in passed}:
        return None
    names = " and ".join(sorted(guard.__name__ for guard in guards))
    return (
        f"task {task!r} needs {names} among the server's filters; the job lists "
        f"{[type(one).__name__ for one in passed]}."
    )
