"""Processes that find what the base install has, and nothing else that is installed here."""

from importlib.metadata import distributions, packages_distributions, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = "surgical-aggregation"

HOOK = """
import sys
for name in {hidden}:
    sys.modules[name] = None  # so its import fails
"""


def base():
    """Names of the packages that an install without extras has."""
    there = {canonicalize_name(found.name) for found in distributions()}
    found, wanted = set(), {PROJECT}
    while wanted:
        name = wanted.pop()
        found.add(name)
        needed = (Requirement(line) for line in requires(name) or ())
        names = {
            canonicalize_name(each.name)
            for each in needed
            if each.marker is None or each.marker.evaluate({"extra": ""})
        }
        wanted |= (names & there) - found
    return found


def hidden():
    """Modules that other packages have."""
    kept = base() | {"pip", "setuptools"}
    return sorted(
        module
        for module, packages in packages_distributions().items()
        if not {canonicalize_name(name) for name in packages} & kept
    )


def hook(folder):
    """Write what hides them from every Python that has the folder in PYTHONPATH."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(HOOK.format(hidden=hidden()))
    return folder
