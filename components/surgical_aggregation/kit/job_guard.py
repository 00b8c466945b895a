"""Refuse jobs without custom code that hold more than their configuration.

FLARE searches the whole kit for files by name, including the folders of jobs: a job's
comm_config.json could name a folder of Python to import, and its resources.json replace the site's.
FLARE deletes the folder that a job's id names. It also substitutes environment variables of the
service, and any file or URL that a HOCON file includes, into a job's settings, and a class name in
the settings would carry their values to the server.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType

from nvflare.apis.app_validation import AppValidator
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_component import FLComponent
from nvflare.apis.fl_constant import FLContextKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.job_def import JobMetaKey
from nvflare.fuel.utils.config_factory import ConfigFactory
from nvflare.lighter.tool_consts import NVFLARE_SIG_FILE, NVFLARE_SUBMITTER_CRT_FILE

_CONFIGURATION = re.compile(r"config/config_fed_(server|client)\.(conf|json)")
_SIGNATURES = (NVFLARE_SIG_FILE, NVFLARE_SUBMITTER_CRT_FILE)
_FOLLOWED = re.compile(r"\$\{|include", re.IGNORECASE)  # anywhere: HOCON allows both in many places
_RESOURCES = "local/resources.json"
_REFERENCE = re.compile(r"\{(?:\$(?P<variable>\w+)|\w+)\}")


class JobFiles(AppValidator):
    """Refuse an app without custom/ that has other files or forbidden settings.

    Runs in the service of a server or site, as `app_validator` of its local/resources.json, before
    any part of the job runs there. It also reports all classes that the kit's allow-list lacks;
    FLARE would refuse them one by one in the job's process. An app with custom/ is accepted here:
    it brings code, for which its submitter needs FLARE's BYOC right.

    Args:
        variables: Names of the environment variables that a job's settings may refer to. A text
            with braces must be a single reference, {name} or {$VARIABLE}. Default: none.
        packages: Group of entry points -> installed packages whose entry points a job may name.
            Entry points of other groups are not checked. Default: no groups.
    """

    def __init__(
        self,
        variables: Sequence[str] = (),
        packages: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ):
        self.variables = variables
        self.packages = packages

    def validate(self, app_folder: str) -> tuple[str, dict[str, bool]]:
        """FLARE's hook: why an app is refused, or "", and facts for FLARE (none)."""
        app = Path(app_folder)
        if (app / "custom").exists():
            return "", {}
        foreign = self._foreign()
        faults = (
            self._fault(path, path.relative_to(app).as_posix(), foreign) for path in app.rglob("*")
        )
        return next(filter(None, faults), "") or _not_allowed(app), {}

    def _fault(self, path: Path, name: str, foreign: Mapping[str, str]) -> str:
        if name == "config" or path.name in _SIGNATURES:
            return ""
        if not _CONFIGURATION.fullmatch(name) or not path.is_file():
            return (
                f"a job without code may have only its configuration files; this one has {name!r}"
            )
        try:
            if path.suffix == ".conf" and (found := _FOLLOWED.search(path.read_text("utf-8"))):
                return f"{name}: a job without code may not use {found[0]!r}; write its value"
            content = ConfigFactory.load_config(str(path)).to_dict()
        except Exception as error:  # of many kinds
            return f"{name} cannot be read: {error}"
        for text in _texts(content):
            refers = _REFERENCE.fullmatch(text.strip())
            allowed = refers and refers["variable"] in (None, *self.variables)
            if set(text) & {"{", "}"} and not allowed:
                known = ", ".join(f"{{${variable}}}" for variable in self.variables)
                return (
                    f"{name}: braces may enclose only the name of a setting, or be one of {known}; "
                    f"got {text!r}"
                )
            if package := foreign.get(text):
                return (
                    f"{name}: {text!r} comes from the package {package}, which this kit does not "
                    f"let jobs use. To allow it, add {package!r} to 'packages' of JobFiles in the "
                    f"kit's {_RESOURCES}, and restart the service"
                )
        return ""

    def _foreign(self) -> Mapping[str, str]:
        """Name of an entry point that jobs may not use -> the package that offers it."""
        return {
            point.name: point.dist.name
            for group, packages in self.packages.items()
            for point in entry_points(group=group)
            if point.dist and point.dist.name not in packages
        }


class JobIds(FLComponent):
    """Refuse a submission that sets its own job id, which FLARE must generate.

    Runs on the server, in its service, as a component of its local/resources.json.
    """

    def handle_event(self, event_type: str, fl_ctx: FLContext) -> None:
        """Check a job's meta before FLARE stores the job."""
        meta = fl_ctx.get_prop(FLContextKey.JOB_META) or {}
        if event_type == EventType.SUBMIT_JOB and JobMetaKey.JOB_ID.value in meta:
            reason = "the server generates job ids; remove 'job_id' from the job's meta.json"
            fl_ctx.set_prop(FLContextKey.JOB_BLOCK_REASON, reason, private=True, sticky=False)


def _not_allowed(app: Path) -> str:
    """Which classes of an app the kit's allow-list lacks, and how to fix that; "": none."""
    kit = next((folder for folder in app.parents if (folder / _RESOURCES).is_file()), None)
    if kit is None:
        return ""
    resources = json.loads((kit / _RESOURCES).read_text("utf-8"))
    allowed = resources.get("class_allow_list", ["*"])
    if "*" in allowed or resources.get("class_list_enforcement_mode") == "warn":
        return ""
    files = [ConfigFactory.load_config(str(file)).to_dict() for file in app.glob("config/config_*")]
    named = sorted({path for file in files for path in _classes(file)} - {*allowed})
    packages = tuple(each for each in allowed if each.endswith("."))
    missing = [repr(path) for path in named if not path.startswith(packages)]
    if not missing:
        return ""
    gone = [repr(path) for path in allowed if not _is_there(path)]
    instead = f", and has {', '.join(gone)}, which no longer exist" if gone else ""
    return (
        f"class_allow_list in this kit's {_RESOURCES} lacks {', '.join(missing)}{instead}. If the "
        "list was made for another version of this software, update it to the installed classes, "
        "and restart the service"
    )


def _classes(content: object, arguments: bool = False) -> Iterator[str]:
    """Paths of the classes in a configuration, found as FLARE does."""
    if isinstance(content, dict):
        keys = () if arguments else ("path", "class_path")
        yield from (content[key] for key in keys if isinstance(content.get(key), str))
        for key, value in content.items():
            yield from _classes(value, arguments=key == "args")
    elif isinstance(content, list):
        for part in content:
            yield from _classes(part)


def _is_there(path: str) -> bool:
    """Whether the module of a class is installed."""
    try:
        return path.endswith(".") or find_spec(path.rpartition(".")[0]) is not None
    except (ModuleNotFoundError, ValueError):
        return False


def _texts(content: object) -> Iterator[str]:
    """Every text in a configuration, including keys."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict | list | tuple):
        for part in content:
            yield from _texts(part)
        for value in content.values() if isinstance(content, dict) else ():
            yield from _texts(value)
