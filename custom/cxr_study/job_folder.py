"""Copies of a job folder with other sites and other knobs; the folder itself stays as it is."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from pyhocon import ConfigFactory

from cxr_study import knob_values
from cxr_study.vocabulary import nearest

SERVER_APP = "app_server"
CLIENT_APP = "app_client"
SERVER_CONFIG = f"{SERVER_APP}/config/config_fed_server.conf"
CLIENT_CONFIG = f"{CLIENT_APP}/config/config_fed_client.conf"

ALIKE = ("backbone", "image_size", "hidden", "union", "strategy")
"""Knobs of a site that must be the same at all of them."""

Settings = Mapping[str, object]
"""Knob -> value."""

_KNOB = re.compile(
    r"""^(?P<name>\w+)[ ]=[ ](?P<value>"(?:[^"\\\n]|\\.)*"|[^#"\[{\n]*?)(?P<rest>[ ]*(?:\#.*)?)$""",
    re.M | re.X,
)


_SITE = re.compile(r"\w[\w.@-]*")


class JobError(ValueError):
    """A job folder, a knob or a site name is not usable."""


def knobs(job: Path, site: str | None = None) -> dict[str, object]:
    """Values of a job's knobs: the primitive settings at the top of its two configurations.

    Args:
        job: Job folder.
        site: Whose knobs, where a site may have some of its own. Default None: those that the
            sites share.

    Raises:
        JobError: The folder is no job of this project, or not for this site.
    """
    app = CLIENT_APP if site is None else _app(job, site)
    return {**_knobs(job / SERVER_CONFIG), **_knobs(client_config(job, app))}


def sites(job: Path) -> tuple[str, ...]:
    """Names of the sites that a job is deployed to."""
    return tuple(client_apps(job))


def client_apps(job: Path) -> dict[str, str]:
    """Site -> its app: "app_client", or "app_<site>" where it has knobs of its own."""
    deployed = json.loads(_read(job / "meta.json"))["deploy_map"]
    return {site: app for app in deployed if app != SERVER_APP for site in deployed[app]}


def client_config(job: Path, app: str) -> Path:
    """Path of the configuration of a client app."""
    return job / app / "config/config_fed_client.conf"


def encrypted(job: Path) -> bool:
    """Whether a job's models are homomorphically encrypted."""
    return "surgical_aggregation.homomorphic." in _read(job / SERVER_CONFIG)


def check(
    job: Path, *, sites: Sequence[str], settings: Settings, per_site: Mapping[str, Settings]
) -> None:
    """Refuse what `copy` would refuse.

    Args:
        job: Job folder.
        sites: Names of the sites.
        settings: Knob -> value, at the server and at every site.
        per_site: Site -> knob -> value, at that site alone.

    Raises:
        JobError: See `copy`.
        ValueError: A value is unknown or out of range; see `knob_values`.
    """
    _check_names(sites)
    _check(settings, knobs(job), f"job {job.name!r}")
    own = client_apps(job)
    for site, values in per_site.items():
        _check_site(site, values, sites)
        _check(values, _knobs(job / CLIENT_CONFIG), f"a site of job {job.name!r}")
        knob_values.check({**knobs(job, site if site in own else None), **settings, **values})
    knob_values.check({**knobs(job), **settings})


def copy(
    job: Path,
    target: Path,
    *,
    sites: Sequence[str],
    settings: Settings,
    per_site: Mapping[str, Settings] | None = None,
) -> None:
    """Copy a job with some knobs set, deployed to the given sites.

    A site with knobs of its own gets an app of its own, so that no other site sees them.

    Args:
        job: Job folder. A site that has an app of its own there keeps it.
        target: New folder; must not exist.
        sites: Names of the sites.
        settings: Knob -> value, at the server and at every site.
        per_site: Site -> knob -> value, at that site alone. Default None: none.

    Raises:
        JobError: A knob is not the job's, or not one that sites may differ in; its value is of
            another kind than the job's own; a site is none of `sites`, or no name; or the folder
            exists.
        ValueError: A value is unknown or out of range; see `knob_values`.
    """
    per_site = per_site or {}
    check(job, sites=sites, settings=settings, per_site=per_site)
    if target.exists():
        raise JobError(f"a job needs a new folder; {target} exists. Remove it, or give another.")
    shutil.copytree(job, target)
    own = {site: app for site, app in client_apps(job).items() if app != CLIENT_APP}
    for site in per_site.keys() - own.keys():
        own[site] = f"app_{site}"
        shutil.copytree(target / CLIENT_APP, target / own[site])
    for site in own.keys() - set(sites):
        shutil.rmtree(target / own.pop(site))
    _rewrite(target / SERVER_CONFIG, settings)
    _deploy(target, sites, own)
    _rewrite(target / CLIENT_CONFIG, settings)
    for site, app in own.items():
        _rewrite(client_config(target, app), {**settings, **per_site.get(site, {})})


def _deploy(target: Path, sites: Sequence[str], own: Mapping[str, str]) -> None:
    """Say in a job's meta.json who gets which app, the shared one or their `own`, and who must be.

    FLARE starts a job as soon as its meta's min_clients are there, and admits nobody later.
    """
    meta = json.loads(_read(target / "meta.json"))
    meta["min_clients"] = _knobs(target / SERVER_CONFIG)["min_clients"]
    deployed: dict[str, list[str]] = {SERVER_APP: meta["deploy_map"][SERVER_APP]}
    for site in sites:
        deployed.setdefault(own.get(site, CLIENT_APP), []).append(site)
    meta["deploy_map"] = deployed
    (target / "meta.json").write_text(json.dumps(meta, indent=2) + "\n", encoding="utf-8")


def _app(job: Path, site: str) -> str:
    apps = client_apps(job)
    if site not in apps:
        raise JobError(f"job {job.name!r} has no site {site!r}; {nearest(site, tuple(apps))}.")
    return apps[site]


def _knobs(config: Path) -> dict[str, object]:
    return dict(_parsed(_read(config)))


@lru_cache
def _parsed(text: str) -> Settings:
    # A tenth of a second each time, and one run looks at its job a dozen times.
    parsed = ConfigFactory.parse_string(text)
    names = [match["name"] for match in _KNOB.finditer(text)]
    return {name: parsed[name] for name in names if name != "format_version"}


def _rewrite(config: Path, settings: Settings) -> None:
    text = _KNOB.sub(lambda match: _set(match, settings), _read(config))
    config.write_text(text, encoding="utf-8")


def _set(match: re.Match[str], settings: Settings) -> str:
    name = match["name"]
    if name not in settings:
        return match[0]
    return f"{name} = {json.dumps(settings[name])}{match['rest']}"


def _check(settings: Settings, known: Settings, whose: str) -> None:
    for name, value in settings.items():
        if name not in known:
            raise JobError(f"{whose} has no knob {name!r}; {nearest(name, tuple(known))}.")
        _check_kind(name, value, known[name])


def _check_names(sites: Sequence[str]) -> None:
    strange = [site for site in sites if not _SITE.fullmatch(site)]
    if not sites or strange or len(set(sites)) < len(sites):
        raise JobError(
            "sites need names of letters, digits and -._@, each another; got "
            f"{', '.join(map(repr, sites)) or 'none'}."
        )


def _check_site(site: str, values: Settings, sites: Sequence[str]) -> None:
    if site not in sites:
        raise JobError(
            f"knobs are given for site {site!r}, which takes no part; "
            f"{nearest(site, tuple(sites))}."
        )
    if f"app_{site}" in (SERVER_APP, CLIENT_APP):
        raise JobError(
            f"a site with knobs of its own needs another name than {site!r}: its app would have "
            "the name of the others'. Rename the site."
        )
    for name in ALIKE:
        if name in values:
            raise JobError(
                f"knob {name!r} must be the same at every site; it is given for site {site!r}. "
                f"Set it for all of them: {name}={values[name]}"
            )


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
