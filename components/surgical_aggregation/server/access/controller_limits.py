"""What a job's workflows must be, so that each part of the server can do its work."""

from __future__ import annotations

from collections.abc import Collection

from nvflare.apis.filter import Filter
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_context import FLContext
from nvflare.app_common.workflows.base_model_controller import BaseModelController

from surgical_aggregation.wire import flare_internals


def model_controllers(fl_ctx: FLContext) -> list[BaseModelController]:
    """The job's workflows of FLARE's newer kind, as its FedAvg is; none where it has no such."""
    workflows = flare_internals.workflows(fl_ctx)
    return [workflow for workflow in workflows if isinstance(workflow, BaseModelController)]


def needs_federated_training(component: FLComponent, what: str, fl_ctx: FLContext) -> None:
    """End the run where a part has a setting that means nothing under FLARE's FedAvg."""
    for workflow in model_controllers(fl_ctx):
        component.system_panic(
            f"{type(component).__name__}: {what} cannot be had under {type(workflow).__name__}. "
            "Take FederatedTraining as the workflow, or leave it out.",
            fl_ctx,
        )


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
