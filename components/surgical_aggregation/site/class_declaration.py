"""How a site tells the server which classes it labels."""

import uuid
from collections.abc import Sequence

from nvflare.apis.event_type import EventType
from nvflare.apis.filter import Filter
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable

from surgical_aggregation.site.contract.restricted_site import PermittedSite, find_site
from surgical_aggregation.site.contract.site_policy import NO_POLICY
from surgical_aggregation.site.local_notes import note, note_error
from surgical_aggregation.wire.headers import CLASSES, PROCESS, VERSIONS
from surgical_aggregation.wire.versions import installed_versions


def declare_versions(fl_ctx: FLContext) -> None:
    """Tell the server, with every message from now on, which versions this site has."""
    fl_ctx.set_prop(VERSIONS, installed_versions(), private=False, sticky=True)


def declare_classes(component: FLComponent, classes: Sequence[str], fl_ctx: FLContext) -> None:
    """Tell the server, with every message from now on, which classes this site labels."""
    fl_ctx.set_prop(CLASSES, list(classes), private=False, sticky=True)
    fl_ctx.set_prop(PROCESS, uuid.uuid4().hex, private=False, sticky=True)
    component.log_info(fl_ctx, f"declared {len(classes)} classes: {', '.join(classes)}")


class DeclareClasses(FLComponent):
    """Declare the classes that the site shares to the server when a run starts.

    Runs on the client. What a client sets public goes to the server alone, with every message, so
    the server knows the classes at the very first task request; and the versions, see `versions`.

    Args:
        site_id: Id of the `Site` component. Default "site".
    """

    def __init__(self, site_id: str = "site"):
        super().__init__()
        self.site_id = site_id

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Declare at START_RUN; a site that cannot name its classes declares none.

        The reason, and what the policy withholds, is in the site's notes (see `local_notes`).
        """
        if event_type != EventType.START_RUN:
            return
        declare_versions(fl_ctx)
        try:
            site = find_site(self.site_id, fl_ctx)
            classes = site.classes
        except Exception as error:  # of the hospital's files, or of its code
            said = note_error(fl_ctx, "no classes to declare", error)
            self.log_error(fl_ctx, said, fire_event=False)
            return
        declare_classes(self, classes, fl_ctx)
        if site.policy != NO_POLICY:
            withheld = site.withheld if isinstance(site, PermittedSite) else {}
            said = "; ".join(f"{name} ({why})" for name, why in withheld.items()) or "no class"
            notes = note(fl_ctx, f"this site's policy withholds: {said}")
            self.log_info(fl_ctx, f"{notes} says what this site's policy withholds, if anything")


class DeclareNames(Filter):
    """Declare classes that are given by name, for a site without a `Site` component.

    Runs on the client. A filter that lets all pass: FLARE's recipes add no other part at a site.

    Args:
        classes: Their names. Default: none.
    """

    def __init__(self, classes: Sequence[str] = ()):
        super().__init__()
        self.classes = classes

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Declare at START_RUN, see `DeclareClasses`."""
        if event_type == EventType.START_RUN:
            declare_versions(fl_ctx)
            declare_classes(self, self.classes, fl_ctx)

    def process(self, shareable: Shareable, fl_ctx: FLContext) -> Shareable:
        """The same."""
        return shareable
