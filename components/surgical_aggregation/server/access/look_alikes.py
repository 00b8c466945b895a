"""Find classes of different sites that may be one class in two spellings."""

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
"""Group of entry points: functions with the signature of `resemblance`."""

MOST = 200
"""Largest number of classes that are compared: the first ones by name."""

NOTE, REFUSE = "note", "refuse"


class LookAlikes(FLComponent):
    """Report classes of different sites that may be one class; each would get its own column.

    Runs on the server. Compares names only, whenever a site requests a task, with the functions
    that installed packages offer for an application's vocabulary (see `GROUP`), else by spelling.
    Each pair is logged and recorded (`RunRecord`) at the server; no site is informed of another's
    classes. The server's policy may refuse such runs, which then end when the second of the two
    sites requests its first task, and runs with more classes than are compared:

        {"scopes": [{"name": "cxr", "properties": {"look_alikes": "refuse"}}],
         "default_scope": "cxr"}
    """

    def __init__(self) -> None:
        super().__init__()
        self._refuses = False
        self._compared: set[tuple[str, str]] = set()
        self._judges: list[Callable[[str, str], str | None]] = []

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Read the policy at the start, then compare declared classes."""
        if event_type == EventType.START_RUN:
            self._judges = [judge for _, judge in offered(GROUP, Callable)] or [resemblance]
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
            text = f"{len(fit)} classes are declared; the first {MOST} by name are compared"
            self.log_warning(fl_ctx, text)
            if self._refuses:  # the others could hide a look-alike
                self.system_panic(f"{text}; this server's policy refuses look-alikes", fl_ctx)
        for pair in combinations(fit[:MOST], 2):
            both = set(sites[pair[0]]) & set(sites[pair[1]])  # a site with both distinguishes them
            if both or pair in self._compared:
                continue
            self._compared.add(pair)
            reasons = (judge(*pair) for judge in self._judges)
            if reason := next(filter(None, reasons), None):
                self._announce({name: sites[name] for name in pair}, reason, fl_ctx)

    def _announce(self, classes: dict[str, list[str]], reason: str, fl_ctx: FLContext) -> None:
        named = " and ".join(f"{shown(name)} ({', '.join(at)})" for name, at in classes.items())
        finding = f"{named} may be one class: {reason}"
        self.log_warning(fl_ctx, f"{finding}. Ask the sites; one class needs one name everywhere.")
        alike = {"classes": classes, "reason": reason}
        self.fire_event_with_data(headers.LOOK_ALIKE, fl_ctx, headers.ALIKE, alike)
        if self._refuses:
            self.system_panic(
                f"{finding}, and this server's policy refuses look-alikes. Use one name at all "
                "sites; or, if they are two classes, set 'look_alikes' to 'note' in the server's "
                "local/privacy.json.",
                fl_ctx,
            )
