"""A FLARE FedJob from the configuration of a job folder."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from nvflare.apis.job_def import SERVER_SITE_NAME
from nvflare.fuel.utils.class_utils import instantiate_class
from nvflare.job_config.api import FedJob
from nvflare.job_config.defs import FilterType
from pyhocon import ConfigFactory

from cxr_study.jobs import job_folder
from cxr_study.jobs.code_shipping import MARKER, PACKAGES
from surgical_aggregation.site.contract.site import Site

_REFERENCE = re.compile(r"\{(\w+)\}")
_FILTERS = {
    "task_data_filters": FilterType.TASK_DATA,
    "task_result_filters": FilterType.TASK_RESULT,
}


@dataclass(frozen=True)
class Configuration:
    """What a job folder says, with its settings in their places.

    What only a site knows stays a reference: {SITE_NAME}, {$CXR_SITES}, {$CXR_INITIAL_BODY}.

    Attributes:
        server: The server's configuration.
        clients: App -> its configuration.
        apps: Site -> its app.
        min_clients: Sites that the job cannot start or go on without.
        marked: Whether it is marked as one that brings code; see `code_shipping`.
    """

    server: Mapping[str, Any]
    clients: Mapping[str, Mapping[str, Any]]
    apps: Mapping[str, str]
    min_clients: int
    marked: bool


def read(job: Path) -> Configuration:
    """Read a job folder."""
    apps = job_folder.client_apps(job)
    return Configuration(
        _resolved(job / job_folder.SERVER_CONFIG),
        {app: _resolved(job_folder.client_config(job, app)) for app in apps.values()},
        apps,
        json.loads((job / job_folder.META).read_text(encoding="utf-8"))["min_clients"],
        (job / job_folder.SERVER_APP / "custom" / MARKER.name).is_file(),
    )


class StudyJob(FedJob):
    """A FedJob that is exported as the job folders are: sites with the same app share it.

    FedJob alone would give every site an app of its own, or one app to all of them and the server,
    in which every site would find the server's configuration. The server's half is added at once,
    the sites' by `add_sites`.
    """

    def __init__(self, name: str, configuration: Configuration):
        super().__init__(name=name, min_clients=configuration.min_clients)
        self.set_app_packages(list(PACKAGES))  # else it carries copies of some of their modules
        self._sharing: list[str] = []
        self._marked = configuration.marked
        server = configuration.server
        self._add(server, [SERVER_SITE_NAME], {})
        for workflow in server["workflows"]:
            self.to_server(_built(workflow), id=workflow["id"])
        self.to_server({"server": server["server"]})

    def add_sites(self, configuration: Configuration, site: Site | None = None) -> None:
        """Add the sites' half, with `site` in place of the component of that id if given."""
        for app, config in configuration.clients.items():
            names = [name for name, its in configuration.apps.items() if its == app]
            self._add(config, names, {"site": site} if site else {})
            for entry in config["executors"]:
                executor = _built(entry["executor"])
                for name in names:
                    self.to(executor, name, tasks=entry["tasks"])
            if app == job_folder.CLIENT_APP:
                self._sharing = names

    def _add(self, config: Mapping[str, Any], targets: list[str], given: Mapping[str, Any]) -> None:
        """Add components, filters and the marker; an object is built once for all targets."""
        for entry in config["components"]:
            component = given.get(entry["id"]) or _built(entry)
            for target in targets:
                self.to(component, target, id=entry["id"])
        for key, filter_type in _FILTERS.items():
            for entry in config[key]:
                for filter_ in map(_built, entry["filters"]):
                    for target in targets:
                        self.to(filter_, target, filter_type=filter_type, tasks=entry["tasks"])
        for target in targets if self._marked else ():
            self.add_file_to(str(MARKER), target)

    def export_job(self, job_root: str) -> None:
        """Export the job into <job_root>/<name>, with one app for the sites whose apps are alike.

        They are compared at every export anew: recipe helpers may have changed one.
        """
        super().export_job(job_root)
        folder = Path(job_root) / self.name
        shared = folder / job_folder.CLIENT_APP
        alike = [
            site
            for site in self._sharing
            if _content(folder, site) == _content(folder, self._sharing[0])
        ]
        if not alike or (shared.exists() and shared != folder / f"app_{alike[0]}"):
            return
        meta = json.loads((folder / job_folder.META).read_text(encoding="utf-8"))
        (folder / f"app_{alike[0]}").rename(shared)
        for site in alike:
            del meta["deploy_map"][f"app_{site}"]
            shutil.rmtree(folder / f"app_{site}", ignore_errors=True)
        meta["deploy_map"][job_folder.CLIENT_APP] = alike
        (folder / job_folder.META).write_text(json.dumps(meta, indent=4), encoding="utf-8")


def _content(job: Path, site: str) -> dict[Path, bytes]:
    """Every file of a site's app."""
    app = job / f"app_{site}"
    return {file.relative_to(app): file.read_bytes() for file in app.rglob("*") if file.is_file()}


def _resolved(file: Path) -> dict[str, Any]:
    config = _parsed(file.read_text(encoding="utf-8"))
    resolved: dict[str, Any] = _put(config, config)
    return resolved


@lru_cache
def _parsed(text: str) -> Mapping[str, Any]:
    # A fifth of a second each time, and one recipe looks at its job several times.
    config: Mapping[str, Any] = ConfigFactory.parse_string(text).as_plain_ordered_dict()
    return config


def _put(value: Any, settings: Mapping[str, Any]) -> Any:
    """A configuration with the values of its settings in place of references to them."""
    if isinstance(value, dict):
        return {key: _put(item, settings) for key, item in value.items()}
    if isinstance(value, list):
        return [_put(item, settings) for item in value]
    match = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    return settings.get(match[1], value) if match else value


def _built(entry: Mapping[str, Any]) -> Any:
    """The object that an entry of a configuration describes."""
    arguments = entry.get("args", {})
    built = instantiate_class(entry["path"], arguments)
    # FedJob leaves out what equals a default, which may be another one in a site's version. FLARE
    # 2.9 has no public way to tell it not to.
    built._always_serialize_args = tuple(arguments)
    return built
