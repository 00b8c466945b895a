"""FLARE's recipe of a method, for SimEnv, PocEnv and ProdEnv.

To import this module is to import FLARE's recipes, which take `--export` and `--export-dir` out of
the command line.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nvflare.apis.job_def import SERVER_SITE_NAME
from nvflare.fuel.utils.class_utils import instantiate_class
from nvflare.job_config.api import FedJob
from nvflare.job_config.defs import FilterType
from nvflare.recipe.spec import ExecEnv, Recipe
from pyhocon import ConfigFactory

from cxr_study.jobs import job_folder, job_templates
from cxr_study.jobs.code_shipping import MARKER, PACKAGES
from cxr_study.jobs.command_line_settings import JobError, Settings
from surgical_aggregation.site.contract.site import Site
from surgical_aggregation.wire.flare_internals import export_defaults

_OF_OUR_SITE = ("sites", "backbone", "image_size", "hidden", "batch_size", "augmentation", "union")
_REFERENCE = re.compile(r"\{(\w+)\}")
_FILTERS = {
    "task_data_filters": FilterType.TASK_DATA,
    "task_result_filters": FilterType.TASK_RESULT,
}


class SurgicalAggregationRecipe(Recipe):
    """A method of the papers as a FLARE job: exactly that of its folder in jobs/.

    Server and sites get different apps, and a site with settings of its own an app of its own. Data
    and initial body are not part of the job: see `site_files` and `initial_body`.

    Args:
        sites: Names of the sites. Default: those of the phantom.
        name: Of the job. Default None: the method's.
        method: One of `job_templates.JOBS`. Default "surgical".
        strategy: "fedavg", "fedbn" or "fedbn+"; default None: the method's own.
        preset: See `PRESETS`. Default None: the settings of the folder, for the phantom on CPUs.
        num_rounds: Rounds of this job. Default None: the preset's, else the folder's.
        min_clients: Results that a round needs. Default None: the folder's, 0: of all sites.
        site_files: Folder of <site>.yaml at every site. Default None: the variable CXR_SITES there,
            else the phantom.
        initial_body: Checkpoint at the server. Default None: the variable CXR_INITIAL_BODY there;
            unset, FLARE's simulator on the phantom takes "drawings", and others refuse.
        code: "marked" (default) where there is no allow-list, as in SimEnv and PocEnv; "installed"
            for sites whose kits allow the packages; see `code_shipping`.
        site: Component that brings classes, network and data in place of the chest X-ray site,
            whose settings are then of no use. Default None: that one.
        per_site_config: Site -> setting -> value; as `set_per_site_config` right afterwards.
        settings: Any other setting of the folder, such as learning_rate=1e-4; see jobs/README.md.

    Raises:
        JobError: No such method, preset, setting or site, or a value of the wrong type.
        StrategyError: No such strategy.

    Example:
        >>> recipe = SurgicalAggregationRecipe(num_rounds=2, learning_rate=1e-3)
        >>> recipe.export("exported")
    """

    def __init__(
        self,
        *,
        sites: Sequence[str] = ("nih", "chexpert"),
        name: str | None = None,
        method: str = "surgical",
        strategy: str | None = None,
        preset: str | None = None,
        num_rounds: int | None = None,
        min_clients: int | None = None,
        site_files: str | None = None,
        initial_body: str | None = None,
        code: str = "marked",
        site: Site | None = None,
        per_site_config: dict[str, dict] | None = None,
        **settings: str | int | float | bool,
    ):
        if isinstance(sites, str):
            raise JobError(
                f"sites needs the names of the sites, e.g. ['nih', 'chexpert']; got {sites!r}. The "
                "folder of their site files is called site_files here."
            )
        named: dict[str, object] = {
            "num_rounds": num_rounds,
            "min_clients": min_clients,
            "sites": site_files,
            "initial_body": initial_body,
        }
        self.sites = tuple(sites)
        self.method = method
        self.strategy = strategy
        self.preset = preset
        self.code = code
        self.site = site
        self.settings = {k: v for k, v in named.items() if v is not None} | settings
        self._configuration = self._render({})
        super().__init__(FolderJob(name or method, self._configuration))
        if per_site_config:
            self.set_per_site_config(per_site_config)

    def process_env(self, env: ExecEnv) -> None:
        """Refuse an environment that names its sites, and not all of the job's."""
        names = getattr(env, "clients", self.sites) or ()
        if missing := [site for site in self.sites if site not in names]:
            raise JobError(
                f"the environment needs the job's sites; it is not told of {', '.join(missing)}. "
                f"Give it clients={list(self.sites)}."
            )

    def _apply_per_site_config(self, config: dict[str, dict]) -> None:
        self._configuration = self._render(config)

    def _prepare_client_apps(self) -> None:
        self._job.add_sites(self._configuration, self.site)

    def _render(self, per_site: Mapping[str, Settings]) -> Configuration:
        with TemporaryDirectory() as folder:
            job_templates.configure(
                self.method,
                Path(folder) / "job",
                sites=self.sites,
                strategy=self.strategy,
                preset=self.preset,
                settings=self.settings,
                per_site=per_site,
                code=self.code,
            )
            return read(Path(folder) / "job")


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
        _resolved(job_folder.server_config(job)),
        {app: _resolved(job_folder.client_config(job, app)) for app in apps.values()},
        apps,
        json.loads((job / job_folder.META).read_text(encoding="utf-8"))["min_clients"],
        (job / job_folder.SERVER_APP / "custom" / MARKER.name).is_file(),
    )


class FolderJob(FedJob):
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
        self.to_server({"server": server["server"], **_settings(server)})

    def add_sites(self, configuration: Configuration, site: Site | None = None) -> None:
        """Add the sites' half, with `site` in place of the component of that id if given."""
        for app, config in configuration.clients.items():
            names = [name for name, its in configuration.apps.items() if its == app]
            self._add(config, names, {"site": site} if site else {})
            settings = _settings(config)
            if site:  # whose network and data are its own
                settings = {k: v for k, v in settings.items() if k not in _OF_OUR_SITE}
            for name in names:
                self.to(settings, name)
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


def _settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """What stands on top of a configuration: FLARE has no use for it there, and reports have."""
    return {
        key: value
        for key, value in config.items()
        if isinstance(value, str | int | float) and key != "format_version"
    }


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
    export_defaults(built, arguments)
    return built
