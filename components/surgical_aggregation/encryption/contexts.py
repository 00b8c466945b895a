"""The encryption contexts of the startup kits, and the error if one is missing."""

from nvflare.apis.filter import Filter
from nvflare.apis.fl_context import FLContext

from surgical_aggregation.wire.headers import NO_KEYS

SERVER = "server_context.tenseal"
"""File of the server's context in its startup kit; a site's is FLARE's client_context.tenseal."""


def lacking(file: str, error: ValueError) -> str:
    """Error message, in one line, for a context file that cannot be loaded."""
    return (
        f"homomorphic encryption needs {file} in the startup folder: {error}. Provision the kits "
        "with FLARE's HEBuilder in project.yml, or with `nvflare poc prepare -he`; for "
        "`nvflare simulator -w W`, copy a site's file and the server's to W/startup."
    )


class SiteKeys(Filter):
    """Mixin for FLARE's filters at a site: without its keys, the site does not participate.

    Put it before FLARE's class in the bases. FLARE would log a traceback and continue; here the
    reason is in the property `NO_KEYS`, and the executor reports it in its reply to `SiteCheck`.
    """

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Load the keys when the run starts, as FLARE does."""
        try:
            super().handle_event(event_type, fl_ctx)
        except ValueError as error:
            reason = lacking(getattr(self, "tenseal_context_file", ""), error)
            fl_ctx.set_prop(NO_KEYS, reason, private=True, sticky=True)
