"""Classes of different sites that may be one, spelt in two ways."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_context import FLContext

from surgical_aggregation.aggregation.class_names import LONGEST, resemblance, shown
from surgical_aggregation.extras import offered
from surgical_aggregation.server.access.job_sites import POLICY, sites_by_class
from surgical_aggregation.wire import headers, privacy_json

GROUP = "surgical_aggregation.look_alikes"
"""Group of entry points: functions with the arguments and the result of `resemblance`."""

MOST = 200
"""Classes that are compared; of more than that the first by name."""

NOTE, REFUSE = "note", "refuse"


class LookAlikes(FLComponent):
    """Name classes that different sites declare and that may be one: each would get a column.

    Runs on the server. Looks at names alone, whenever a site asks for a task, by what installed
    packages know of an application's words (see `GROUP`), else by spelling; no site learns of
    another's. The log has a line for each pair, and so has the record (`RunRecord`). The server's
    policy may refuse such runs; the run then ends when the second of the sites asks first:

        {"scopes": [{"name": "cxr", "properties": {"look_alikes": "refuse"}}],
         "default_scope": "cxr"}
    """

    def __init__(self) -> None:
        super().__init__()
        self._refuses = False
        self._compared: set[tuple[str, str]] = set()
        self._judges: list[Callable[[str, str], str | None]] = []

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Read the policy at the start, then compare what sites declare."""
        if event_type == EventType.START_RUN:
            self._judges = [*offered(GROUP)] or [resemblance]
            try:
                properties = privacy_json.scope_properties(fl_ctx, POLICY) or {}
                policy = properties.get("look_alikes", NOTE)
                if policy not in (NOTE, REFUSE):
                    raise privacy_json.PolicyError(
                        f"the server's local/privacy.json: 'look_alikes' needs {NOTE!r} or "
                        f"{REFUSE!r}; got {policy!r}."
                    )
                self._refuses = policy == REFUSE
            except privacy_json.PolicyError as error:
                self.system_panic(str(error), fl_ctx)
        elif event_type == headers.CLASSES_DECLARED:
            self._compare(fl_ctx)

    def _compare(self, fl_ctx: FLContext) -> None:
        sites = sites_by_class(fl_ctx)
        fit = [name for name in sorted(sites) if len(name) <= LONGEST]
        if len(fit) > MOST:
            said = f"{len(fit)} classes are declared; the first {MOST} by name are compared"
            self.log_warning(fl_ctx, said)
        for pair in combinations(fit[:MOST], 2):
            two = set(sites[pair[0]]) & set(sites[pair[1]])  # who labels both tells them apart
            if two or pair in self._compared:
                continue
            self._compared.add(pair)
            reasons = (judge(*pair) for judge in self._judges)
            if reason := next(filter(None, reasons), None):
                self._announce({name: sites[name] for name in pair}, reason, fl_ctx)

    def _announce(self, classes: dict[str, list[str]], reason: str, fl_ctx: FLContext) -> None:
        named = " and ".join(f"{shown(name)} ({', '.join(at)})" for name, at in classes.items())
        said = f"{named} may be one class: {reason}"
        self.log_warning(fl_ctx, f"{said}. Ask; what is one class needs one name at all sites.")
        alike = {"classes": classes, "reason": reason}
        self.fire_event_with_data(headers.LOOK_ALIKE, fl_ctx, headers.ALIKE, alike)
        if self._refuses:
            self.system_panic(
                f"{said}, and this server's policy refuses look-alikes. Have the sites give it one "
                "name; or, where they are two, set 'look_alikes' to 'note' in the server's "
                "local/privacy.json.",
                fl_ctx,
            )
