"""A job folder: its settings, its sites, and copies of it with others."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cxr_study.common.spelling import nearest
from cxr_study.jobs.command_line_settings import (
    JobError,
    Settings,
    check_known,
    check_per_site,
    check_sites,
)
from cxr_study.jobs.components import MOVED

if TYPE_CHECKING:
    from cxr_study.jobs.job_settings import JobSettings

META = "meta.json"
SERVER_APP = "app_server"
CLIENT_APP = "app_client"
SERVER_CONFIG = f"{SERVER_APP}/config/config_fed_server.conf"
CLIENT_CONFIG = f"{CLIENT_APP}/config/config_fed_client.conf"

SITE = "cxr_study.training.chest_xray_site.ChestXraySite"
"""The class that brings a site's classes, network and data, as a configuration names it."""

_SETTING = re.compile(
    r"""^(?P<name>\w+)[ ]=[ ](?P<value>"(?:[^"\\\n]|\\.)*"|[^#"\[{\n]*?)(?P<rest>[ ]*(?:\#.*)?)$""",
    re.M | re.X,
)
"""A setting in a configuration's text: a primitive value at its top, `name = value`."""


class InitialBodyError(ValueError):
    """An initial body is of another network than the job's."""


def read_settings(job: Path, site: str | None = None) -> dict[str, Any]:
    """Setting -> value: the primitive values at the top of a job's two configurations.

    Those of a site that may have some of its own, or by default those that sites share.

    Raises:
        JobError: The folder is no job of this project, or not for this site.
    """
    apps = client_apps(job)
    app = CLIENT_APP if CLIENT_APP in apps.values() else next(iter(apps.values()))
    if site is not None:
        if site not in apps:
            raise JobError(f"job {job.name!r} has no site {site!r}; {nearest(site, tuple(apps))}.")
        app = apps[site]
    return {**_config_settings(server_config(job)), **_config_settings(client_config(job, app))}


def typed(job: Path, changes: Settings | None = None) -> JobSettings:
    """A job's settings, typed, with some changed; see `job_settings.checked`."""
    from cxr_study.jobs.job_settings import checked  # takes a quarter of a second

    return checked({**read_settings(job), **(changes or {})})


def name(job: Path) -> str:
    """The name of a job, e.g. "surgical"."""
    return str(json.loads(_read(job / META))["name"])


def sites(job: Path) -> tuple[str, ...]:
    """Names of the sites that a job is deployed to."""
    return tuple(client_apps(job))


def client_apps(job: Path) -> dict[str, str]:
    """Site -> its app: "app_client", or "app_<site>" where it has settings of its own."""
    deployed = json.loads(_read(job / META))["deploy_map"]
    return {site: app for app in deployed if app != SERVER_APP for site in deployed[app]}


def server_config(job: Path) -> Path:
    """Path of the server's configuration."""
    return _config(job / SERVER_CONFIG)


def client_config(job: Path, app: str) -> Path:
    """Path of the configuration of a client app."""
    return _config(job / app / Path(CLIENT_CONFIG).relative_to(CLIENT_APP))


def _config(path: Path) -> Path:
    """A configuration of ours, or as FLARE's recipes export it."""
    exported = path.with_suffix(".json")
    return exported if exported.is_file() else path


def encrypted(job: Path) -> bool:
    """Whether a job's models are homomorphically encrypted."""
    return "surgical_aggregation.encryption." in _read(server_config(job))


def has_own_site(job: Path) -> bool:
    """Whether a job's sites are not those of this application: it names another `Site`."""
    config = client_config(job, next(iter(client_apps(job).values())))
    return SITE not in _read(config)


def check(
    job: Path, *, sites: Sequence[str], settings: Settings, per_site: Mapping[str, Settings]
) -> None:
    """Refuse what nobody could run: what `copy` refuses, too few sites, and a job without rounds.

    Raises:
        ValueError: See `copy`; or there are fewer sites than the job waits for, or it has no round
            to make and continues none.
    """
    asked = _check(job, sites, settings, per_site)
    if asked.num_rounds == 0 and not asked.continues:
        raise JobError(
            "setting 'num_rounds' must be 1 or more, or 0 in a job that makes up for the rounds "
            "that an earlier one has not made; got 0. Set continues=<the earlier job's id> as well."
        )
    needed = asked.min_clients or 2  # a federation of one is asked for
    if len(sites) < needed:
        raise JobError(
            f"this job needs the results of {needed} sites; got {', '.join(sites)}. Add sites, or "
            f"set min_clients={len(sites)}."
        )


def copy(
    job: Path,
    target: Path,
    *,
    sites: Sequence[str],
    settings: Settings,
    per_site: Mapping[str, Settings] | None = None,
) -> None:
    """Copy a job with some settings changed, deployed to the given sites.

    A site with settings of its own gets an app of its own, so that no other site sees them.

    Args:
        job: Job folder. A site that has an app of its own there keeps it.
        target: New folder.
        sites: Names of the sites.
        settings: Setting -> value, at the server and at every site.
        per_site: Site -> setting -> value, at that site alone. Default None: none.

    Raises:
        JobError: A setting is not the job's, or not one that sites may differ in; its value is of
            another type; a site is none of `sites`, or no name; or the folder exists.
        ValueError: A value is unknown or out of range; see `job_settings.checked`.
    """
    per_site = per_site or {}
    _check(job, sites, settings, per_site)
    if target.exists():
        raise JobError(f"a job needs a new folder; {target} exists. Remove it, or give another.")
    shutil.copytree(job, target)
    for file in target.glob("*/config/*.conf"):
        text = _read(file)
        for before, path in MOVED.items():
            text = text.replace(before, path)
        file.write_text(text, encoding="utf-8")
    own = {site: app for site, app in client_apps(job).items() if app != CLIENT_APP}
    for site in per_site.keys() - own.keys():
        own[site] = f"app_{site}"
        shutil.copytree(target / CLIENT_APP, target / own[site])
    for site in own.keys() - set(sites):
        shutil.rmtree(target / own.pop(site))
    _change(target / SERVER_CONFIG, settings)
    _change(target / CLIENT_CONFIG, settings)
    for site, app in own.items():
        _change(client_config(target, app), {**settings, **per_site.get(site, {})})
    deployed: dict[str, list[str]] = {}
    for site in sites:
        deployed.setdefault(own.get(site, CLIENT_APP), []).append(site)
    meta = json.loads(_read(target / META))
    # FLARE starts a job as soon as so many are there, and admits nobody later.
    meta["min_clients"] = _config_settings(target / SERVER_CONFIG)["min_clients"] or len(sites)
    meta["deploy_map"] = {SERVER_APP: meta["deploy_map"][SERVER_APP], **deployed}
    (target / META).write_text(json.dumps(meta, indent=2) + "\n", encoding="utf-8")


def check_network(file: Path | None, *, backbone: str, hidden: int) -> None:
    """Refuse an initial body of another network, before anything is trained.

    `file` is a checkpoint, None the phantom's body; `backbone` and `hidden` are the job's.

    Raises:
        InitialBodyError: The body is of another network, or needs another input, as far as its
            manifest says.
        CheckpointError: The file is missing or no checkpoint.
    """
    facts: Mapping[str, Any] = {"backbone": "small_densenet"}
    if file is not None:
        from surgical_aggregation.checkpoints.checkpoint import load

        facts = load(file).manifest
    made_for = (facts.get("backbone", backbone), facts.get("hidden", 0))
    if made_for != (backbone, hidden):
        raise InitialBodyError(
            f"the job's network is {backbone} with {hidden} hidden units; the initial body "
            f"{file or 'of the phantom'} is of {made_for[0]} with {made_for[1]}. "
            "Make one: surgagg model init initial.npz "
            f"--backbone {backbone} --hidden {hidden}; and "
            "give it with --initial-body."
        )
    if "input" not in facts:
        return
    from cxr_study.training.network_facts import input_facts

    if facts["input"] != (needed := input_facts(backbone)):
        raise InitialBodyError(
            f"the initial body {file} needs input {facts['input']}; the job's sites prepare "
            f"{needed}. Make it anew: surgagg model init initial.npz "
            f"--backbone {backbone}"
        )


def settings_in(text: str) -> dict[str, object]:
    """Setting -> value, in the text of a configuration, ours or as FLARE's command rewrites it.

    Raises:
        JobError: A value is not written as JSON is; names the setting and its line.
    """
    found: dict[str, object]
    if text.startswith("{"):  # `nvflare job submit` writes it anew
        from pyhocon import ConfigFactory

        parsed = ConfigFactory.parse_string(text).as_plain_ordered_dict()
        found = {k: v for k, v in parsed.items() if isinstance(v, str | int | float | bool)}
    else:
        found = {match["name"]: _value(match) for match in _SETTING.finditer(text)}
    found.pop("format_version", None)
    return found


def with_settings(text: str, settings: Settings) -> str:
    """The text of a configuration with some settings changed; every other character is kept."""

    def line(match: re.Match[str]) -> str:
        if match["name"] not in settings:
            return match[0]
        # As it is: pyhocon does not read an escaped letter back.
        value = json.dumps(settings[match["name"]], ensure_ascii=False)
        return f"{match['name']} = {value}{match['rest']}"

    return _SETTING.sub(line, text)


def _value(match: re.Match[str]) -> object:
    try:
        return json.loads(match["value"])
    except json.JSONDecodeError:
        line = match.string.count("\n", 0, match.start()) + 1
        raise JobError(
            f"line {line}: setting {match['name']!r} needs a number, true, false, or a text in "
            f"double quotes; got {match['value']}."
        ) from None


def _config_settings(config: Path) -> dict[str, Any]:
    text = _read(config)
    try:
        return settings_in(text)
    except JobError as error:
        raise JobError(f"{config}, {error}") from None


def _change(config: Path, settings: Settings) -> None:
    config.write_text(with_settings(_read(config), settings), encoding="utf-8")


def _check(
    job: Path, sites: Sequence[str], settings: Settings, per_site: Mapping[str, Settings]
) -> JobSettings:
    """Refuse what is no copy of the job; its settings as the sites share them."""
    from cxr_study.jobs.job_settings import JobSettings, checked

    check_sites(sites)
    shared = read_settings(job)
    check_known(settings, shared, f"job {job.name!r}")
    own = client_apps(job)
    for site, values in per_site.items():
        check_per_site(site, values, sites)
        if f"app_{site}" in (SERVER_APP, CLIENT_APP):
            raise JobError(
                f"a site with settings of its own needs another name than {site!r}: its app would "
                "have the name of the others'. Rename the site."
            )
        check_known(values, _config_settings(job / CLIENT_CONFIG), f"a site of job {job.name!r}")
    apart = {site for site, app in own.items() if app != CLIENT_APP} & set(sites)
    for site in sorted(apart | per_site.keys()):
        as_it_is = read_settings(job, site if site in own else None)
        checked({**as_it_is, **settings, **per_site.get(site, {})})
    for values in (settings, *per_site.values()):
        for name in values.keys() - JobSettings.model_fields.keys():  # that only this job has
            if type(values[name]) is not type(shared[name]):
                raise JobError(
                    f"setting {name!r} needs a value like the job's own {shared[name]!r}; got "
                    f"{values[name]!r}."
                )
    return checked({**shared, **settings})


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise JobError(
            f"{path} does not exist; a job folder holds {META}, {SERVER_CONFIG} and "
            f"{CLIENT_CONFIG}. Give one that is whole."
        ) from None
