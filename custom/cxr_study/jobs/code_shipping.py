"""How a job's code gets to the server and the sites."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType

from cxr_study.jobs.components import ALLOWED

PACKAGES = ("surgical_aggregation", "cxr_study", "cxr_phantom", "cxr_studies", "cxr_audit")
"""What a job's configuration names, besides FLARE's own classes."""

MARKER = Path(__file__).parent / "templates" / "README.txt"
"""A job with a file in each app's custom/ may name classes of installed packages."""

WAYS: Mapping[str, str] = MappingProxyType(
    {
        "installed": "server and sites have the packages, and each allows their classes",
        "marked": "they have the packages, and allow the submitter to bring code",
        "byoc": "the job brings the packages, and they allow the submitter to bring code",
    }
)
"""Way -> what it needs."""


_PATH = re.compile(r'\bpath\s*[=:]\s*"([\w.]+)"')


def add(app: Path, way: str) -> None:
    """Put into an app's custom/ what one of `WAYS` needs there.

    "installed" has no custom/, "marked" a file that says why it is there, "byoc" verbatim copies of
    the packages.
    """
    custom = app / "custom"
    if way == "marked":
        custom.mkdir()
        shutil.copyfile(MARKER, custom / MARKER.name)
    elif way == "byoc":
        for package in PACKAGES:
            source = Path(str(import_module(package).__file__)).parent
            compiled = shutil.ignore_patterns("__pycache__", ".*")
            shutil.copytree(source, custom / package, ignore=compiled)


def mark(job: Path) -> None:
    """Mark a job that brings no code, for FLARE's simulator, which has no allow-list."""
    for app in job.glob("app_*"):
        if not (app / "custom").exists():
            add(app, "marked")


def unmark(job: Path) -> None:
    """Take the marker out of a job whose components are all on the kits' allow-list."""
    texts = [file.read_text(encoding="utf-8") for file in job.glob("*/config/*.conf")]
    named = {name for text in texts for name in _PATH.findall(text)}
    if not named <= set(ALLOWED):
        return
    for custom in job.glob("*/custom"):
        if [file.name for file in custom.iterdir()] == [MARKER.name]:
            shutil.rmtree(custom)
