"""By which code and on which machine a run is made."""

from __future__ import annotations

import hashlib
import platform
import re
from importlib import import_module
from pathlib import Path

_PACKAGES = (
    "surgical_aggregation", "cxr_deployment", "cxr_phantom", "cxr_pretrained", "cxr_study",
    "cxr_studies",
)  # fmt: skip
_SUFFIXES = {".py", ".yaml", ".csv", ".npz"}
_CPUINFO = Path("/proc/cpuinfo")


def sources() -> str:
    """SHA-256 of code and data files of the packages that draw, train and measure.

    Runs with the same digest are of one state of the code, whatever else a commit has changed.

    Returns:
        The first 12 hexadecimal digits.
    """
    sha = hashlib.sha256()
    for package in _PACKAGES:
        folder = Path(str(import_module(package).__file__)).parent
        for file in sorted(file for file in folder.rglob("*") if file.suffix in _SUFFIXES):
            sha.update(f"{package}/{file.relative_to(folder).as_posix()}\0".encode())
            sha.update(file.read_bytes() + b"\0")
    return sha.hexdigest()[:12]


def machine() -> str:
    """Model name of the processor; runs are reproducible bit for bit on one model."""
    text = _CPUINFO.read_text(encoding="utf-8") if _CPUINFO.is_file() else ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else platform.processor() or platform.machine()
