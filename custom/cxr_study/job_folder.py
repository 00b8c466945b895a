"""Copies of a job folder with other sites and other knobs; the folder itself stays as it is."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyhocon import ConfigFactory

from cxr_study.vocabulary import nearest

SERVER_CONFIG = "app_server/config/config_fed_server.conf"
CLIENT_CONFIG = "app_client/config/config_fed_client.conf"

_KNOB = re.compile(
    r"""^(?P<name>\w+)[ ]=[ ](?P<value>"(?:[^"\\\n]|\\.)*"|[^#"\[{\n]*?)(?P<rest>[ ]*(?:\#.*)?)$""",
    re.M | re.X,
)


class JobError(ValueError):
    """A job folder, a knob or a site name is not usable."""


def knobs(job: Path) -> dict[str, object]:
    """Values of a job's knobs: the primitive settings at the top of its two configurations.

    Raises:
        JobError: The folder is no job of this project.
    """
    values: dict[str, object] = {}
    for name in (SERVER_CONFIG, CLIENT_CONFIG):
        text = _read(job / name)
        parsed = ConfigFactory.parse_string(text)
        for match in _KNOB.finditer(text):
            if match["name"] != "format_version":
                values[match["name"]] = parsed[match["name"]]
    return values


def sites(job: Path) -> tuple[str, ...]:
    """Names of the sites that a job is deployed to."""
    return tuple(json.loads(_read(job / "meta.json"))["deploy_map"]["app_client"])


def copy(job: Path, target: Path, *, sites: Sequence[str], settings: Mapping[str, object]) -> None:
    """Copy a job with some knobs set, deployed to the given sites.

    Args:
        job: Job folder.
        target: New folder; must not exist.
        sites: Names of the sites.
        settings: Knob -> value.

    Raises:
        JobError: A knob is not the job's, or its value is of another kind than the job's own.
    """
    known = knobs(job)
    for name in settings:
        if name not in known:
            raise JobError(f"job {job.name!r} has no knob {name!r}; {nearest(name, tuple(known))}.")
        _check_kind(name, settings[name], known[name])
    shutil.copytree(job, target)
    meta = json.loads(_read(target / "meta.json"))
    meta["deploy_map"]["app_client"] = list(sites)
    (target / "meta.json").write_text(json.dumps(meta, indent=2) + "\n", encoding="utf-8")
    for name in (SERVER_CONFIG, CLIENT_CONFIG):
        path = target / name
        path.write_text(_KNOB.sub(lambda m: _set(m, settings), _read(path)), encoding="utf-8")


def _set(match: re.Match[str], settings: Mapping[str, object]) -> str:
    name = match["name"]
    if name not in settings:
        return match[0]
    return f"{name} = {json.dumps(settings[name])}{match['rest']}"


def _check_kind(name: str, value: object, own: object) -> None:
    kinds: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number"}
    if type(value) is not type(own) and not (type(own) is float and type(value) is int):
        kind = kinds.get(type(own), "a text")
        raise JobError(f"knob {name!r} needs {kind}, as the job's own {own!r} is; got {value!r}.")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise JobError(
            f"{path} does not exist; a job folder holds meta.json, {SERVER_CONFIG} and "
            f"{CLIENT_CONFIG}. Give one of the folders in jobs/, from the project's root."
        ) from None
