"""A job for FLARE's Job API: components built as objects and exported as a folder of JSON."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from nvflare.apis.filter import Filter
from nvflare.apis.job_def import SERVER_SITE_NAME
from nvflare.app_common.default_component_policy import DEFAULT_CLASS_ALLOW_LIST
from nvflare.fuel.utils.class_utils import instantiate_class
from nvflare.job_config.api import FedJob
from nvflare.job_config.fed_app_config import FedAppConfig

from cxr_study.jobs import folder
from cxr_study.jobs.components import MARKER, PACKAGES, PATHS, check_code_mode
from cxr_study.jobs.folder import CLIENT_APP
from cxr_study.jobs.job import Job
from cxr_study.jobs.presets import JobError
from surgical_aggregation.wire.flare_internals import export_defaults

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class FlareJob(FedJob):
    """A FedJob whose components refer to the job's settings, listed at the top of its files.

    Sites with the same components share an app. A plain FedJob would give each site an app of its
    own, or one app to all sites and the server, which would show every site the server's
    configuration.

    Args:
        job: Method, sites and settings.
        code: How its code reaches server and sites, one of `CODE_MODES`. Default "installed".

    Raises:
        JobError: `code` is not one of `CODE_MODES`.
    """

    def __init__(self, job: Job, code: str = "installed"):
        check_code_mode(code)
        needed = job.settings["min_clients"] or len(job.sites)
        super().__init__(name=job.name, min_clients=needed)
        self.set_app_packages(list(PACKAGES))  # else it carries copies of some of their modules
        self.asked = job
        self._code = code
        self._used: set[str] = set()

    def component(
        self, name: str, *same: str, fixed: Mapping[str, Any] = _NOTHING, **arguments: str
    ) -> Any:
        """Build a component whose exported arguments refer to settings of the job.

        It is built with the values of the settings, so that its constructor checks them. Then the
        values are replaced by references such as "{num_rounds}", which FLARE resolves at run time.

        Args:
            name: Name of a class in `PATHS`.
            same: Arguments that have the name of a setting.
            fixed: Argument -> value, written into the configuration as it is.
            arguments: Argument -> name of a setting. Settings that the job does not have are
                skipped, and the component's default applies.

        Returns:
            The component, to be added with `to_server` or `to_sites`.

        Raises:
            JobError: The component does not store an argument under its name (or with a leading
                underscore), so FLARE's export would leave it out silently.
            ValueError: The component refuses the value of a setting.
        """
        settings, known = {name: name for name in same} | arguments, self.asked.settings
        named = {name: setting for name, setting in settings.items() if setting in known}
        values = {argument: known[setting] for argument, setting in named.items()}
        built = instantiate_class(PATHS[name], {**values, **fixed})
        self._used.update(named.values())
        kept = vars(built)
        for argument in (*named, *fixed):
            attribute = argument if argument in kept else f"_{argument}"
            if attribute not in kept:
                raise JobError(f"{name} keeps no attribute {argument!r}, so it cannot be exported.")
            if argument in named:
                kept[attribute] = f"{{{named[argument]}}}"
        export_defaults(built, {**named, **fixed})
        return built

    def references(self, *settings: str) -> dict[str, str]:
        """Setting -> a reference to it ("{name}"), which FLARE resolves at run time.

        Names that are not settings of the job are skipped.
        """
        own = [setting for setting in settings if setting in self.asked.settings]
        self._used.update(own)
        return {setting: f"{{{setting}}}" for setting in own}

    def to_sites(self, component: Any, **options: Any) -> None:
        """Add one component to the apps of all sites.

        Args:
            component: Executor, filter or other component.
            options: Of `FedJob.to`: `id`, `tasks` or `filter_type`. A filter without `filter_type`
                is added as a plain component, for others to refer to.
        """
        for site in self.asked.sites:
            if isinstance(component, Filter) and "filter_type" not in options:
                self._deploy_map[site].add_component(component, options["id"])
            else:
                self.to(component, site, **options)

    def finish_server(self) -> None:
        """Add the settings that the server's components refer to, and the code if it is carried.

        To be called once, after the last component of the server and before any of the sites.
        """
        # FLARE's own interval, 2 s, costs 1.5 s a round.
        interval = {"server": {"task_request_interval": 0.1}}
        self._finish(SERVER_SITE_NAME, self.asked.settings, interval)
        self._used.clear()

    def finish_sites(self) -> None:
        """Add the settings that the sites' components refer to, and the code if it is carried."""
        for site in self.asked.sites:
            self._finish(site, self.asked.site_settings(site))

    def _finish(
        self, target: str, values: Mapping[str, Any], more: Mapping[str, Any] = _NOTHING
    ) -> None:
        self.to({**{name: values[name] for name in values if name in self._used}, **more}, target)
        if self._code == "marked":
            self.add_file_to(str(MARKER), target)
        for package in PACKAGES if self._code == "carried" else ():
            source = Path(str(import_module(package).__file__)).parent
            self.add_file_to(str(source), target, dest_dir=package)

    def _set_all_apps(self) -> None:
        """Give sites with the same components one app.

        This is done again at every export: FLARE's recipe helpers may have added components.
        """
        self.job.fed_apps.clear()
        self.job.deploy_map.clear()
        self._set_site_app(self._deploy_map[SERVER_SITE_NAME], SERVER_SITE_NAME)
        shared: dict[str, Any] = {}
        for site in self.asked.sites:
            app = self._deploy_map[site].get_app_config()
            name = self.asked.app(site)
            if name == CLIENT_APP and _app_content(app) != shared.setdefault(
                "parts", _app_content(app)
            ):
                name = f"app_{site}"
            self.job.add_fed_app(name, FedAppConfig(client_app=app))
            self.job.set_site_app(site, name)

    def export_job(self, job_root: str) -> None:
        """Export the job into <job_root>/<name>, with the settings at the top of each file."""
        super().export_job(job_root)
        for file in Path(job_root, self.name).glob("*/config/*.json"):
            config = json.loads(file.read_text(encoding="utf-8"))
            for filters in (*config["task_data_filters"], *config["task_result_filters"]):
                filters["tasks"].sort()  # of a set
            folder.write_json(file, config)
        for compiled in Path(job_root, self.name).glob("*/custom/**/__pycache__"):
            shutil.rmtree(compiled)

    def simulator_run(self, workspace: str, *args: Any, **options: Any) -> Any:
        """Run the job in FLARE's simulator, after allowing the classes that it names there.

        Args:
            workspace: The simulator's folder.
            args: Further arguments of `FedJob.simulator_run`.
            options: The same, by name.
        """
        with TemporaryDirectory() as exported:
            self.export_job(exported)
            allow_classes(Path(workspace), folder.read(Path(exported, self.name)).classes)
        return super().simulator_run(workspace, *args, **options)


def allow_classes(workspace: Path, classes: Iterable[str]) -> None:
    """Add classes to the allow-list of a simulator's workspace, local/resources.json.

    FLARE lets a job that brings no code use only classes on this list. Entries that are there
    already stay.

    Args:
        workspace: The simulator's folder; created where it does not exist.
        classes: Dotted paths.
    """
    file = workspace / "local" / "resources.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    found = json.loads(file.read_text("utf-8")) if file.is_file() else {"format_version": 2}
    known = found.get("class_allow_list", DEFAULT_CLASS_ALLOW_LIST)
    found["class_allow_list"] = sorted({*known, *classes})
    file.write_text(json.dumps(found), "utf-8")


def _app_content(app: Any) -> dict[str, Any]:
    """Content of a site's app, to compare it with another's."""
    executors = [(each.tasks, each.executor) for each in app.executors]
    return {**vars(app), "executors": executors}
