"""Surgical aggregation for NVIDIA FLARE: one model from sites that label different classes."""

from importlib import metadata

__version__ = "0.1.0"

FLARE = ">=2.9,<2.10"
"""Versions of NVIDIA FLARE that this package runs with, as its installer asks for them."""


class FlareError(ImportError):
    """The FLARE that is installed is none of `FLARE`, or lacks something of it."""


def _check_flare() -> None:
    try:
        version = metadata.version("nvflare")
    except metadata.PackageNotFoundError:  # much of the package needs none
        return
    if version.split(".")[:2] != ["2", "9"]:
        raise FlareError(
            f"surgical-aggregation needs nvflare {FLARE}; got {version}. At the server, every "
            f"site and here: pip install 'nvflare{FLARE}'"
        )


_check_flare()
