"""Declare a site's classes and versions to the server."""

from collections.abc import Sequence

from nvflare.apis.event_type import EventType
from nvflare.apis.filter import Filter
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable

from surgical_aggregation.site.contract.restricted_site import find_site, withheld_classes
from surgical_aggregation.site.contract.site import Site
from surgical_aggregation.site.contract.site_policy import NO_POLICY
from surgical_aggregation.site.local_notes import note, note_error
from surgical_aggregation.wire.headers import CLASSES, VERSIONS
from surgical_aggregation.wire.versions import installed_versions

__all__ = ["DeclareNames"]


def declare_versions(fl_ctx: FLContext) -> None:
    """Send this site's software versions to the server with every message from now on."""
    fl_ctx.set_prop(VERSIONS, installed_versions(), private=False, sticky=True)


def declare_classes(component: FLComponent, classes: Sequence[str], fl_ctx: FLContext) -> None:
    """Send this site's classes to the server with every message from now on."""
    fl_ctx.set_prop(CLASSES, list(classes), private=False, sticky=True)
    component.log_info(fl_ctx, f"declared {len(classes)} classes: {', '.join(classes)}")


def note_withheld(component: FLComponent, site: Site, fl_ctx: FLContext) -> None:
    """Write the classes that the site's policy withholds into its notes."""
    if site.policy != NO_POLICY:
        withheld = withheld_classes(site).items()
        names = "; ".join(f"{name} ({why})" for name, why in withheld) or "no class"
        notes = note(fl_ctx, f"this site's policy withholds: {names}")
        text = f"classes that this site's policy withholds, if any: see {notes}"
        component.log_info(fl_ctx, text)


class DeclareClasses(FLComponent):
    """Declare the site's shared classes and versions to the server when a run starts.

    Runs on the client. FLARE sends a client's public properties to the server only, with every
    message, so the server knows them at the first task request.
    """

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Declare at START_RUN; a site whose classes cannot be read declares none.

        The reason, and the classes that the policy withholds, are in the site's notes (see
        `local_notes`).
        """
        if event_type != EventType.START_RUN:
            return
        declare_versions(fl_ctx)
        try:
            site = find_site(fl_ctx)
            classes = site.classes
        except Exception as error:  # from the site's files or code
            text = note_error(fl_ctx, "no classes to declare", error)
            self.log_error(fl_ctx, text, fire_event=False)
            return
        declare_classes(self, classes, fl_ctx)
        note_withheld(self, site, fl_ctx)


class DeclareNames(Filter):
    """Declare classes by name, for a site without a `Site` component.

    Runs on the client. A filter that changes nothing, since FLARE's recipes can add only filters at
    a site.

    Args:
        classes: Names of the site's classes. Default: none.
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
        """Return the shareable unchanged."""
        return shareable
