"""The chest X-ray application: data, network, training jobs, reports, and trained models in use.

`load_model` opens a trained model in Python. Everything else is used through the command `surgagg`,
or imported from its module.
"""

from importlib import import_module
from typing import Any

__all__ = ["load_model"]


def __getattr__(name: str) -> Any:
    # Loaded on first use: every command imports this package.
    if name in __all__:
        return getattr(import_module("cxr_study.models.loaded_model"), name)
    raise AttributeError(f"module 'cxr_study' has no attribute {name!r}")
