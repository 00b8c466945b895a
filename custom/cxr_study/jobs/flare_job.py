"""A job as FLARE's Job API takes it: parts built as objects, exported as a folder of JSON."""

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
from cxr_study.jobs.components import MARKER, PACKAGES, PATHS, check_way
from cxr_study.jobs.folder import CLIENT_APP
from cxr_study.jobs.job import Job
from cxr_study.jobs.presets import JobError
from surgical_aggregation.wire.flare_internals import export_defaults

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class FlareJob(FedJob):
    """A FedJob whose parts refer to the job's settings, which stand at the top of its files.

    Sites with the same parts share an app: FedJob alone would give every site an app of its own, or
    one app to all of them and the server, in which every site would find the server's
    configuration.

    Args:
        job: What is asked for.
        code: One of `WAYS`.

    Raises:
        JobError: There is no such way.
    """

    def __init__(self, job: Job, code: str = "installed"):
        check_way(code)
        needed = job.settings["min_clients"] or len(job.sites)
        super().__init__(name=job.name, min_clients=needed)
        self.set_app_packages(list(PACKAGES))  # else it carries copies of some of their modules
        self.asked = job
        self._code = code
        self._used: set[str] = set()

    def part(
        self, name: str, *same: str, fixed: Mapping[str, Any] = _NOTHING, **arguments: str
    ) -> Any:
        """A component of `PATHS`, by the name of its class.

        It is built with the settings' values, so that it checks them, and then refers to them.

        Args:
            name: Of the class.
            same: Arguments whose name is that of a setting.
            fixed: Argument -> value.
            arguments: Argument -> name of a setting. Those that the job does not have are left out.

        Raises:
            JobError: The component keeps an argument under no attribute of its name: FLARE's export
                would leave it out without a word.
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
        """Setting of the job -> a reference to it, which FLARE resolves where the job runs."""
        own = [setting for setting in settings if setting in self.asked.settings]
        self._used.update(own)
        return {setting: f"{{{setting}}}" for setting in own}

    def to_sites(self, part: Any, **how: Any) -> None:
        """Add one object to the apps of all sites."""
        for site in self.asked.sites:
            if isinstance(part, Filter) and "filter_type" not in how:  # it stands by itself
                self._deploy_map[site].add_component(part, how["id"])
            else:
                self.to(part, site, **how)

    def finish_server(self) -> None:
        """Add what the server's parts refer to, and its code."""
        # FLARE's own interval, 2 s, costs 1.5 s a round.
        interval = {"server": {"task_request_interval": 0.1}}
        self._finish(SERVER_SITE_NAME, self.asked.settings, interval)
        self._used.clear()

    def finish_sites(self) -> None:
        """Add what the sites' parts refer to, and their code."""
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
        """Give sites with the same parts one app, at every export anew: helpers may add some."""
        self.job.fed_apps.clear()
        self.job.deploy_map.clear()
        self._set_site_app(self._deploy_map[SERVER_SITE_NAME], SERVER_SITE_NAME)
        shared: dict[str, Any] = {}
        for site in self.asked.sites:
            app = self._deploy_map[site].get_app_config()
            name = self.asked.app(site)
            if name == CLIENT_APP and _parts(app) != shared.setdefault("parts", _parts(app)):
                name = f"app_{site}"
            self.job.add_fed_app(name, FedAppConfig(client_app=app))
            self.job.set_site_app(site, name)

    def export_job(self, job_root: str) -> None:
        """Export the job into <job_root>/<name>, its settings at the top of each file."""
        super().export_job(job_root)
        for file in Path(job_root, self.name).glob("*/config/*.json"):
            config = json.loads(file.read_text(encoding="utf-8"))
            for filters in (*config["task_data_filters"], *config["task_result_filters"]):
                filters["tasks"].sort()  # of a set
            folder.write_json(file, config)
        for compiled in Path(job_root, self.name).glob("*/custom/**/__pycache__"):
            shutil.rmtree(compiled)

    def simulator_run(self, workspace: str, *args: Any, **how: Any) -> Any:
        """Run it in FLARE's simulator, which is to allow the classes that it names."""
        with TemporaryDirectory() as exported:
            self.export_job(exported)
            allow_classes(Path(workspace), folder.read(Path(exported, self.name)).classes)
        return super().simulator_run(workspace, *args, **how)


def allow_classes(workspace: Path, classes: Iterable[str]) -> None:
    """Have FLARE's simulator, in its workspace, allow a job that brings no code its classes."""
    file = workspace / "local" / "resources.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    found = json.loads(file.read_text("utf-8")) if file.is_file() else {"format_version": 2}
    known = found.get("class_allow_list", DEFAULT_CLASS_ALLOW_LIST)
    found["class_allow_list"] = sorted({*known, *classes})
    file.write_text(json.dumps(found), "utf-8")


def _parts(app: Any) -> dict[str, Any]:
    """What a site's app consists of, to compare with another's."""
    executors = [(each.tasks, each.executor) for each in app.executors]
    return {**vars(app), "executors": executors}
