"""How a site tells the server which classes it holds, and nobody else."""

from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_context import FLContext

from surgical_aggregation.permitted_site import PermittedSite
from surgical_aggregation.server_policy import Table, tables
from surgical_aggregation.site import find_site

CLASSES = "surgical.classes"
"""Name of the public sticky property; public, so that it rides on every message to the server."""


class DeclareClasses(FLComponent):
    """Declare the classes that the site lets out to the server when a run starts.

    Runs on the client. What a client sets public goes to the server alone, with every message, so
    the server knows the classes at the very first task request.

    Args:
        site_id: Id of the `Site` component.
    """

    def __init__(self, site_id: str = "site"):
        super().__init__()
        self.site_id = site_id

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Declare at START_RUN; a site that cannot name its classes declares none, and says why."""
        if event_type != EventType.START_RUN:
            return
        try:
            site = find_site(self.site_id, fl_ctx)
            classes = list(site.classes)
        except (ValueError, OSError, MemoryError) as error:
            self.log_error(fl_ctx, f"no classes to declare: {error}", fire_event=False)
            return
        fl_ctx.set_prop(CLASSES, classes, private=False, sticky=True)
        self.log_info(fl_ctx, f"declared {len(classes)} classes: {', '.join(classes)}")
        if isinstance(site, PermittedSite):
            withheld = "; ".join(f"{name} ({why})" for name, why in site.withheld.items())
            self.log_info(fl_ctx, f"this site's policy withholds: {withheld}")


def declared_classes(fl_ctx: FLContext) -> tuple[str, ...]:
    """Classes that the peer has declared; empty when it has declared none.

    Args:
        fl_ctx: Context of a message from or to the site, on the server.
    """
    peer = fl_ctx.get_peer_context()
    classes = peer.get_prop(CLASSES) if peer else None
    if not isinstance(classes, (list, tuple)) or not all(isinstance(c, str) for c in classes):
        return ()
    return tuple(classes)


def permitted_classes(fl_ctx: FLContext, permitted: Table | None) -> tuple[str, ...]:
    """Classes that the peer has declared and that every table lets it hold.

    Args:
        fl_ctx: Context of a message from or to the site, on the server.
        permitted: The job's table, site -> classes; None: the job has none. Where neither it nor
            the server's own policy has one, a site may hold what it declares.

    Raises:
        PolicyError: A table is not usable.
    """
    names = declared_classes(fl_ctx)
    for table in tables(fl_ctx, permitted):
        allowed = set(table.get(peer_name(fl_ctx), ()))
        names = tuple(name for name in names if name in allowed)
    return names


def peer_name(fl_ctx: FLContext) -> str:
    """Name of the site that a message comes from or goes to, on the server."""
    peer = fl_ctx.get_peer_context()
    return str(peer.get_identity_name()) if peer else "?"
