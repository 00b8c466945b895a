"""A given job folder: its configurations, and copies of it with other settings.

Everything but the settings at the top of a configuration is copied unchanged.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cxr_study.jobs.components import ALLOWED, MARKER
from cxr_study.jobs.presets import JobError, Settings
from surgical_aggregation.wire.untrusted_text import one_line

META = "meta.json"
SERVER_APP = "app_server"
CLIENT_APP = "app_client"
SERVER_CONFIG = "config/config_fed_server.json"
CLIENT_CONFIG = "config/config_fed_client.json"

Configuration = Mapping[str, Any]
"""Content of a configuration file."""


@dataclass(frozen=True)
class JobFolder:
    """The content of a job folder; see `read`.

    Attributes:
        path: The folder.
        meta: Content of FLARE's meta.json: the job's name, `min_clients`, `deploy_map`.
        server: The server's configuration.
        clients: App -> its configuration; the app that most sites share comes first.
    """

    path: Path
    meta: Mapping[str, Any]
    server: Configuration
    clients: Mapping[str, Configuration]

    @property
    def apps(self) -> dict[str, str]:
        """Site -> name of its app: "app_client", or "app_<site>" if it has its own settings."""
        return deployed_apps(self.meta)

    @property
    def classes(self) -> frozenset[str]:
        """Dotted paths of the classes that its configurations name."""
        return frozenset(_paths([self.server, *self.clients.values()]))

    def copy(
        self, target: Path, server: Settings, sites: Mapping[str, tuple[str, Settings]]
    ) -> None:
        """Copy the folder with other values of its settings and for other sites.

        Only settings at the top of a configuration are changed; values for others are ignored. A
        site that the folder does not know gets a copy of the shared app.

        Args:
            target: New folder.
            server: Setting -> value, at the server.
            sites: Site -> name of its app in the copy, and its settings.
        """
        self._copy_app(SERVER_APP, target / SERVER_APP, SERVER_CONFIG, self.server, server)
        shared = next(iter(self.clients))
        deployed: dict[str, list[str]] = {SERVER_APP: self.meta["deploy_map"][SERVER_APP]}
        for site, (app, settings) in sites.items():
            if app not in deployed:
                source = self.apps.get(site, shared) if app != CLIENT_APP else shared
                config = self.clients[source]
                self._copy_app(source, target / app, CLIENT_CONFIG, config, settings)
            deployed.setdefault(app, []).append(site)
        # FLARE starts a job as soon as this number of sites is connected, and admits none later.
        needed = server.get("min_clients") or len(sites)
        write_json(target / META, {**self.meta, "min_clients": needed, "deploy_map": deployed})

    def _copy_app(
        self, source: str, target: Path, name: str, config: Configuration, settings: Settings
    ) -> None:
        shutil.copytree(self.path / source, target, ignore=shutil.ignore_patterns("config_fed_*"))
        custom = target / "custom"
        # The marker is for FLARE's simulator alone; see `components.CODE_MODES`.
        marked = [file.name for file in custom.glob("*")] == [MARKER.name]
        if marked and self.classes <= set(ALLOWED):
            shutil.rmtree(custom)
        changed = {name: settings[name] for name in top(config).keys() & settings.keys()}
        write_json(target / name, {**config, **changed})


def read(path: Path) -> JobFolder:
    """Read a job folder: ours, or an export of FLARE.

    Raises:
        JobError: It is not a job folder, or a file in it cannot be read; names the file.
    """
    meta = _read(path / META)
    deployed = meta.get("deploy_map")
    if not (
        isinstance(meta.get("name"), str)
        and isinstance(deployed, dict)
        and deployed.keys() > {SERVER_APP}
        and all(isinstance(sites, list) and sites for sites in deployed.values())
        and all(isinstance(site, str) for sites in deployed.values() for site in sites)
    ):
        raise JobError(
            f"{path / META} needs a 'name', and a 'deploy_map' with lists of parties for "
            f"{SERVER_APP} and the sites' apps; got {one_line(repr(dict(meta)))}."
        )
    apps = deployed_apps(meta)
    server = _read(path / SERVER_APP / SERVER_CONFIG)
    ordered = sorted(dict.fromkeys(apps.values()), key=lambda app: app != CLIENT_APP)
    clients = {app: _read(path / app / CLIENT_CONFIG) for app in ordered}
    return JobFolder(path, meta, server, clients)


def deployed_apps(meta: Mapping[str, Any]) -> dict[str, str]:
    """Site -> name of its app, from the content of a job's meta.json; see `JobFolder.apps`."""
    deployed = meta["deploy_map"]
    return {site: app for app in deployed if app != SERVER_APP for site in deployed[app]}


def top(config: Configuration) -> dict[str, Any]:
    """Setting -> value: the texts, numbers and booleans at the top level of a configuration."""
    return {
        name: value
        for name, value in config.items()
        if isinstance(value, str | int | float) and name != "format_version"
    }


def parse(name: str, text: str) -> dict[str, Any]:
    """Parse the text of a configuration.

    Args:
        name: The file's name, for messages.
        text: Its content.

    Raises:
        JobError: It is no JSON object; names the file and, where it is no JSON, the line.
    """
    try:
        found: dict[str, Any] = json.loads(text)
    except json.JSONDecodeError as error:
        raise JobError(f"{name}, line {error.lineno}: JSON is needed; {error.msg}.") from None
    if not isinstance(found, dict):
        raise JobError(f"{name}: a JSON object is needed; got {one_line(repr(found))}.")
    return found


def write_json(file: Path, value: Mapping[str, Any]) -> None:
    """Write a configuration as JSON, its settings first; see `top`."""
    settings = top(value)
    file.parent.mkdir(parents=True, exist_ok=True)
    first = {"format_version": value["format_version"]} if "format_version" in value else {}
    text = json.dumps({**first, **settings, **value}, indent=2)
    file.write_text(text + "\n", encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise JobError(
            f"{path} does not exist; a job folder holds {META}, {SERVER_APP}/{SERVER_CONFIG} and "
            f"{CLIENT_APP}/{CLIENT_CONFIG}. Give a complete one."
        ) from None
    return parse(str(path), text)


def _paths(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(path := value.get("path"), str):
            yield path
        value = list(value.values())
    if isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _paths(item)
