"""The encryption contexts of the startup kits, and what is said where one is missing."""

from nvflare.apis.filter import Filter
from nvflare.apis.fl_context import FLContext

from surgical_aggregation.wire.headers import NO_KEYS

SERVER = "server_context.tenseal"
"""The server's keys, in its startup kit; a site's are FLARE's default, client_context.tenseal."""


def lacking(file: str, error: ValueError) -> str:
    """What to do where a file of keys cannot be loaded, in one line."""
    return (
        f"homomorphic encryption needs {file} in the startup folder: {error}. Kits with such files "
        "are made by `surgagg deploy poc prepare --encrypted`, `nvflare poc prepare -he`, or "
        "FLARE's HEBuilder in project.yml; for `nvflare simulator -w W`, copy a site's and the "
        "server's to W/startup."
    )


class SiteKeys(Filter):
    """Base of the site's filters, before FLARE's: a site without its keys takes no part.

    FLARE would log a trace and go on. The executor finds the reason when it is asked whether the
    site can take part.
    """

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Load the keys when the run starts, as FLARE does."""
        try:
            super().handle_event(event_type, fl_ctx)
        except ValueError as error:
            reason = lacking(getattr(self, "tenseal_context_file", ""), error)
            fl_ctx.set_prop(NO_KEYS, reason, private=True, sticky=True)
