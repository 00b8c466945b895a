"""Initial bodies that installed packages offer by name, in place of a file."""

from __future__ import annotations

from pathlib import Path

from surgical_aggregation.extras import offered

GROUP = "surgical_aggregation.initial_bodies"


def offered_body(name: str | None, *, simulated: bool = False) -> Path | None:
    """File of a body that an installed package offers; None where none does.

    An entry point of `GROUP` is a function with the same arguments and result. It may offer a body
    that is not named where a job runs in FLARE's simulator, on data of the package's own.

    Args:
        name: Name of the body; None or "": none is named.
        simulated: Whether FLARE's simulator asks. Default False.
    """
    found = (offer(name, simulated=simulated) for offer in offered(GROUP))
    return next((body for body in found if body is not None), None)
