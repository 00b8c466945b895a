"""The server's filters: which columns a site receives, and which it may send.

Also: which workflows must have them.
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

__all__ = ["CheckResult", "SelectHead"]


class PermittedFilter(Filter):
    """Base of filters that know which classes each site may train.

    Runs on the server. A malformed table, or one with two spellings of a class, ends the run at its
    start with the reason; until then no site may train any class.

    Args:
        permitted: Site -> classes that it may train; a site that is not in the table may train
            none. Default None: the classes that each site declares. The server's own policy applies
            as well; see `tables`.
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
        """Authenticated site of a message; if unknown, end the run and return an empty text."""
        site = site_of(fl_ctx)
        if not site:
            self.system_panic(
                f"{type(self).__name__} needs the site of a message, which FLARE does not give "
                "here. Use it on tasks that a workflow sends, such as FederatedTraining or FLARE's "
                "FedAvg.",
                fl_ctx,
            )
        return site


class SelectHead(PermittedFilter):
    """Send a site only the body and the columns of its own classes.

    Runs on the server, on task data, once per receiving site. List it for every task that carries a
    model:

        in   body variables, head/<class>/... for every class of the global model
        out  body variables, head/<class>/... for the permitted classes that the site declared

    The output is a new dict of read-only views: FLARE encodes the arrays when the site fetches
    them, and all sites share them. DXO meta is not sent. The header BEST_ROUND is added if there is
    a best model. A site without declared classes receives the body alone, and data that is not a
    model is replaced by an empty model; both are logged. If the receiving site is unknown, nothing
    is sent and the run ends. Never raises, since that would end the round for every site.

    Args:
        permitted: See `PermittedFilter`; give `CheckResult` the same table. Default None.
    """

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        """Reduce the task's model to the variables that the receiving site may see."""
        site = self.site(fl_ctx)
        data = self._selected(site, shareable, fl_ctx) if site else {}
        return DXO(DataKind.WEIGHTS, data=data).update_shareable(shareable)

    def _selected(self, site: str, shareable: Shareable, fl_ctx: FLContext) -> dict[str, Array]:
        try:
            variables = wire.weights(shareable).data
            class_of = {name: wire.class_of(name) for name in variables}
        except wire.WireError as error:
            self.log_error(
                fl_ctx, f"sent {site} an empty model, because the task carries none: {error}"
            )
            return {}
        own = {None, *permitted_classes(fl_ctx, self.permitted)}
        if len(own) == 1 and any(class_of.values()):
            self.log_error(
                fl_ctx,
                f"{site} has declared no permitted classes and receives the body alone. "
                "Is DeclareClasses among the components of its client configuration?",
            )
        best = fl_ctx.get_prop(headers.BEST_ROUND)
        if best is not None:
            shareable.set_header(headers.BEST_ROUND, best)
        # read-only views
        return {n: np.broadcast_to(v, v.shape) for n, v in variables.items() if class_of[n] in own}


class CheckResult(PermittedFilter):
    """Refuse a training result whose columns differ from the site's declared, permitted classes.

    Also refuses a site that uses another site's name, or, under our workflows, that declared other
    classes before.

    Runs on the server, on the result of the training task, before any aggregator:

        in   a site's result
        out  the same, or a reply EXECUTION_RESULT_ERROR, which the workflow counts as a failure of
             this site (the round continues while `min_clients` can still be reached)

    Never raises. The aggregator checks the values.

    Args:
        permitted: See `PermittedFilter`. Default None.
    """

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        """Pass the result on, or replace it by an error reply."""
        if shareable.get_return_code() != ReturnCode.OK:
            return shareable
        site = self.site(fl_ctx)
        reason = self._reason(shareable, fl_ctx) if site else "its site is unknown"
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
                f"its columns must be of the declared classes {sorted(declared)}; "
                f"undeclared {sorted(sent - declared)}, missing {sorted(declared - sent)}"
            )
        return job_sites.unpermitted(fl_ctx, self.permitted)


TRAINED: frozenset[type[Filter]] = frozenset({SelectHead, CheckResult})
"""Filters that a task needs if its results are models."""


def model_controllers(fl_ctx: FLContext) -> list[BaseModelController]:
    """The job's workflows of FLARE's model-controller API, such as FedAvg."""
    workflows = flare_internals.workflows(fl_ctx)
    return [workflow for workflow in workflows if isinstance(workflow, BaseModelController)]


def lacking_guards(task: str, guards: Collection[type[Filter]], fl_ctx: FLContext) -> str | None:
    """Why a task must not be sent: which server filters it lacks; None: it has all `guards`."""
    passed = flare_internals.server_filters(task, fl_ctx)
    if passed is None or set(guards) <= {type(one) for one in passed}:
        return None
    names = " and ".join(sorted(guard.__name__ for guard in guards))
    return (
        f"task {task!r} needs {names} among the server's filters; the job lists "
        f"{[type(one).__name__ for one in passed]}."
    )
