"""Surgical aggregation for NVIDIA FLARE: one model from sites that label different classes."""

from importlib import metadata

__version__ = "0.1.0"

FLARE = ">=2.9,<2.10"
"""Versions of NVIDIA FLARE that this package runs with, as its installer asks for them."""


class FlareError(ImportError):
    """The FLARE that is installed is none of `FLARE`, or lacks something of it."""


_installed = next(iter(metadata.distributions(name="nvflare")), None)  # much needs none
if _installed is not None and _installed.version.split(".")[:2] != ["2", "9"]:
    raise FlareError(
        f"surgical-aggregation needs nvflare {FLARE}; got {_installed.version}. At the server, "
        f"every site and here: pip install 'nvflare{FLARE}'"
    )
