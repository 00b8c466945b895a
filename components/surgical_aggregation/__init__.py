"""Surgical aggregation for NVIDIA FLARE: one model from sites that label different classes."""

from importlib import metadata

__all__ = ["FLARE", "FlareError", "__version__"]

__version__ = "0.1.0"

FLARE = ">=2.9,<2.10"
"""Supported versions of NVIDIA FLARE, as a pip requirement."""


class FlareError(ImportError):
    """The installed FLARE is not one of `FLARE`, or lacks a name that it should have."""


_installed = next(iter(metadata.distributions(name="nvflare")), None)  # may be missing
if _installed is not None and _installed.version.split(".")[:2] != ["2", "9"]:
    raise FlareError(
        f"surgical-aggregation needs nvflare {FLARE}; got {_installed.version}. At the server, "
        f"every site and here: pip install 'nvflare{FLARE}'"
    )
