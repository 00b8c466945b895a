"""The chest X-ray study: its data, network, runs and reports, and the trained model in use."""

from importlib import import_module
from typing import Any

__all__ = ["load_model"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: every command imports this package.
    if name in __all__:
        return getattr(import_module("cxr_study.models.loaded_model"), name)
    raise AttributeError(f"module 'cxr_study' has no attribute {name!r}")
