"""What server and sites add to their FLARE startup kits: policy, resources, rights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cxr_study.common.offered_data import is_demo_data
from cxr_study.jobs.components import ALLOWED
from cxr_study.training import backbones
from surgical_aggregation.aggregation import strategy, weighting
from surgical_aggregation.site.contract.site_policy import SitePolicy

SCOPE = "cxr"
"""The privacy scope of every job that names none."""

GATE = "surgical_aggregation.site.policy_filter.PolicyGate"
_GUARD = "surgical_aggregation.kit.job_guard"
_VARIABLES = ("CXR_INITIAL_BODY", "CXR_MODEL", "CXR_SITES")
"""Variables of a service's environment that a job's settings may refer to."""

_PARTS = (strategy.GROUP, weighting.GROUP, backbones.GROUP)
"""Groups of entry points that a job's settings name parts of."""

_OURS = "surgical-aggregation"
"""This package, whose parts every kit lets jobs use."""

_FOUND_BY_NAME = {"comm_config.json": "local", "resources.json": "local"}
"""File that FLARE looks for in all folders of a kit, jobs' too -> its folder."""

BYOC_ROLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"anyone": ("project_admin", "lead"), "admin": ("project_admin",), "nobody": ()}
)
"""Word -> roles that may bring code. FLARE's own: anyone (who may submit)."""

PRYING = ("shell_commands", "report_env")
"""Rights to what may hold a path: reading the files of a server or site, and asking where they
are."""

TELLING = ("report_version",)
"""Rights that FLARE's own file gives nobody, though all who may look at the system need them."""

Contents = dict[str, Any]


class KitError(ValueError):
    """A folder is no startup kit, not of the wanted kind, or has files of its own already."""


def localise_site(
    kit: Path,
    policy: SitePolicy,
    *,
    gpus: int = 0,
    gpu_memory: int = 0,
    byoc: str = "nobody",
    allow: Sequence[str] = (),
    force: bool = False,
) -> list[Path]:
    """Write a hospital's own files into the local/ folder of its site's startup kit.

    They are FLARE's defaults, which local files replace whole, and: the site's policy and the
    filter that holds every job to it; a job without code holds a configuration (see `job_guard`)
    that names this software's classes and what else is allowed; error logs, which may hold paths,
    are not streamed to the server; nobody of another organisation reads its files.

    Args:
        kit: Startup kit.
        policy: What the hospital decides. A relative folder of site files is made absolute.
        gpus: GPUs that jobs may use, each with so many GiB of `gpu_memory`.
        gpu_memory: GiB.
        byoc: Who of those who submit may bring code: one of `BYOC_ROLES`. Default: nobody.
        allow: What a job without code may name besides this software's classes, see `components`:
            paths of component classes (FLARE calls them with any arguments that a job gives), and
            installed packages whose parts it may use. Default: nothing.
        force: Replace local files that are there.

    Raises:
        KitError: It is no kit of a site, it has such files already, or `byoc` is no such word.
    """
    resources = _resources(kit, "a site", "fed_client.json", allow)
    resources["allow_log_streaming"] = False
    managed = {"num_of_gpus": gpus, "mem_per_gpu_in_GiB": gpu_memory}
    _component(resources, "resource_manager").update(managed)
    properties = {key: value for key, value in asdict(policy).items() if value is not None}
    if policy.site_files is not None and not is_demo_data(policy.site_files):
        properties["site_files"] = str(Path(policy.site_files).absolute())
    privacy = _scope(properties)
    privacy["scopes"][0]["task_result_filters"] = [{"path": GATE}]
    files = {"resources.json": resources, "privacy.json": privacy}
    files["authorization.json"] = _rights(kit, byoc)
    return _write(kit, files, "fed_client.json", force)


def localise_server(
    kit: Path,
    storage: Path,
    *,
    permitted: Mapping[str, Any] | None = None,
    byoc: str = "nobody",
    allow: Sequence[str] = (),
    force: bool = False,
) -> list[Path]:
    """Write the server's own files into the local/ folder of its startup kit; see `localise_site`.

    They are FLARE's defaults and: jobs, snapshots and logs are stored in a folder that stays, where
    FLARE's are in /tmp; a job without code names this software's classes and what else is allowed;
    the findings that each site may contribute, where that is decided.

    Args:
        kit: Startup kit.
        storage: Folder for what the server stores; made absolute.
        permitted: Site -> classes, or study -> such a table; None: as it was, at first whatever a
            site declares.
        byoc: As in `localise_site`, and so are result and errors.
        allow: As in `localise_site`.
        force: As in `localise_site`.
    """
    resources = _resources(kit, "the server", "fed_server.json", allow)
    stored = storage.absolute()
    snapshots = resources["snapshot_persistor"]["args"]["storage"]["args"]
    snapshots["root_dir"] = str(stored / "snapshot-storage")
    _component(resources, "job_manager")["uri_root"] = str(stored / "jobs-storage")
    _component(resources, "log_receiver")["dest_dir"] = str(stored / "logs")
    resources["components"].append({"id": "job_ids", "path": f"{_GUARD}.JobIds"})
    files = {"resources.json": resources, "authorization.json": _rights(kit, byoc)}
    if permitted is not None:
        files["privacy.json"] = _scope({**scope_properties(kit), "permitted": dict(permitted)})
    return _write(kit, files, "fed_server.json", force)


def _resources(kit: Path, kind: str, startup: str, allow: Sequence[str]) -> Contents:
    """FLARE's resources, with what a job without code may name."""
    if not (kit / "startup" / startup).is_file():
        raise KitError(
            f"{kit} is no startup kit of {kind}: it holds no startup/{startup}. Give the folder "
            "that `nvflare provision` or `nvflare package` made."
        )
    resources = _read(kit / "local/resources.json.default")
    classes = [name for name in allow if name.rpartition(".")[2][:1].isupper()]
    packages = [name for name in allow if name not in classes]
    _check_installed(packages)
    resources |= {
        "class_allow_list": [*ALLOWED, *classes],
        "class_list_enforcement_mode": "enforce",
    }
    guard = {"variables": _VARIABLES, "packages": {key: [_OURS, *packages] for key in _PARTS}}
    resources["app_validator"] = {"path": f"{_GUARD}.JobFiles", "args": guard}
    return resources


def _check_installed(packages: Sequence[str]) -> None:
    """Refuse what is no package that offers parts, as it was misspelt or is a function."""
    offered = {
        point.dist.name for group in _PARTS for point in entry_points(group=group) if point.dist
    }
    if unknown := [name for name in packages if name not in offered]:
        raise KitError(
            f"a class with its path, or an installed package that offers parts ("
            f"{', '.join(sorted(offered)) or 'there is none'}), may be allowed; "
            f"got {', '.join(unknown)}."
        )


def _component(resources: Contents, id_: str) -> Contents:
    """Arguments of a component of the resources."""
    arguments: Contents = next(c for c in resources["components"] if c["id"] == id_)["args"]
    return arguments


def _scope(properties: Contents) -> Contents:
    """A privacy.json whose one scope every job gets."""
    return {"scopes": [{"name": SCOPE, "properties": properties}], "default_scope": SCOPE}


def scope_properties(kit: Path) -> Contents:
    """What the one privacy scope of a kit has, none at first."""
    file = kit / "local" / "privacy.json"
    return _read(file)["scopes"][0]["properties"] if file.is_file() else {}


def _rights(kit: Path, byoc: str) -> Contents:
    """FLARE's rights, but for those of other organisations to pry, and for bringing code."""
    if byoc not in BYOC_ROLES:
        raise KitError(f"who may bring code is one of {', '.join(BYOC_ROLES)}; got {byoc!r}.")
    rights = _read(kit / "local/authorization.json.default")
    permissions = rights["permissions"]
    for role in BYOC_ROLES["anyone"]:
        own = permissions[role]
        if isinstance(own, str):  # one word for every right
            own = dict.fromkeys(permissions["lead"], own)
        own |= dict.fromkeys(PRYING, "o:site") | dict.fromkeys(TELLING, "any")
        if role not in BYOC_ROLES[byoc]:
            own["byoc"] = "none"
        permissions[role] = own
    return rights


def _write(kit: Path, files: Mapping[str, Contents], startup: str, force: bool) -> list[Path]:
    """Write local files of a kit, and put what FLARE looks for by name where it looks first."""
    paths = {kit / "local" / name: content for name, content in files.items()}
    taken = [path.name for path in paths if path.exists()]
    if taken and not force:
        raise KitError(
            f"{kit / 'local'} has its own {', '.join(taken)} already. Change them by hand, or "
            "replace them with --force."
        )
    for path, content in paths.items():
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        if path.name == "privacy.json":
            path.chmod(0o600)  # it may name folders, and classes that do not leave
    for name, folder in {**_FOUND_BY_NAME, startup: "startup"}.items():
        (kit / name).unlink(missing_ok=True)
        if (kit / folder / name).is_file():
            (kit / name).symlink_to(Path(folder, name))
        else:
            (kit / name).write_text("{}\n", encoding="utf-8")
    return list(paths)


def _read(file: Path) -> Contents:
    content: Contents = json.loads(file.read_text(encoding="utf-8"))
    return content
