"""The local files of FLARE startup kits: a site's policy, allowed classes, resources, rights.

FLARE reads a kit's local/ folder after its startup/ folder; each file there replaces FLARE's
default of the same name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import entry_points
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cxr_study.common.offered_data import is_demo_data
from cxr_study.common.spelling import nearest
from cxr_study.jobs.components import ALLOWED
from cxr_study.training import backbones
from surgical_aggregation.aggregation import batch_norm_strategy as strategies
from surgical_aggregation.aggregation import weighting
from surgical_aggregation.site.contract.site_policy import SitePolicy

SCOPE = "cxr"
"""Name of the privacy scope, which applies to every job that names no scope."""

GATE = "surgical_aggregation.site.policy_filter.PolicyGate"
"""Class path of the filter that applies a site's policy to every task result."""

_GUARD = "surgical_aggregation.kit.job_guard"
_SITE_REQUESTS = "surgical_aggregation.kit.site_requests.SiteRequests"
_SERVER_REQUESTS = "surgical_aggregation.kit.server_requests.ServerRequests"
_VARIABLES = ("CXR_INITIAL_BODY", "CXR_MODEL", "CXR_SITES")
"""Variables of a service's environment that a job's settings may refer to."""

_EXTENSION_GROUPS = (strategies.GROUP, weighting.GROUP, backbones.GROUP)
"""Groups of entry points by which packages offer strategies, weightings and backbones."""

_OURS = "surgical-aggregation"
"""This package, whose strategies, weightings and backbones every kit allows."""

_FOUND_BY_NAME = {"comm_config.json": "local", "resources.json": "local"}
"""File that FLARE searches for in all folders of a kit, also in those of jobs -> its folder."""

BYOC_ROLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"anyone": ("project_admin", "lead"), "admin": ("project_admin",), "nobody": ()}
)
"""Value of `byoc` (bring your own code) -> roles that may submit jobs with code.

FLARE's own default corresponds to "anyone": every role that may submit jobs.
"""

PRIVATE_RIGHTS = ("shell_commands", "report_env")
"""Rights that can reveal a site's paths; they are limited to admins of the same organisation."""

ERROR_RIGHTS = ("show_errors", "reset_errors")
"""Rights over a running job's errors, which may name the classes of any site; they are limited to
those who may download the job's results, and so receive the names anyway.
"""

OPEN_RIGHTS = ("report_version",)
"""Rights that every admin needs to monitor the system, though FLARE's default grants them to none.
"""

Contents = dict[str, Any]
"""A parsed JSON file."""


class KitError(ValueError):
    """The folder is not a startup kit of the right kind, or has local files already."""


def localise_site(
    kit: Path,
    policy: Mapping[str, Any],
    *,
    gpus: int | None = None,
    gpu_memory: int | None = None,
    byoc: str | None = None,
    allow: Sequence[str] | None = None,
    force: bool = False,
) -> list[Path]:
    """Write a hospital's local files into the startup kit of its site.

    They are FLARE's defaults with these changes:

    - The site's policy, and the filter that applies it to every job's results.
    - A job without code may name only this software's classes, and those in `allow`; see
      `job_guard`.
    - Error logs are not streamed to the server, because they may contain paths.
    - The site answers no messages of other sites, and no request that reads its files; see
      `site_requests`.

    Args:
        kit: The site's startup kit.
        policy: Decisions of the hospital, attributes of `SitePolicy`. The others stay as the kit
            has them, with its other filters and scopes; a new kit has the defaults. A relative
            folder of site files is made absolute.
        gpus: Number of GPUs that jobs may use. Default: as the kit has it; a new kit 0.
        gpu_memory: Memory of each of these GPUs, GiB. Default: as `gpus`.
        byoc: Which roles may submit jobs with code, a key of `BYOC_ROLES`. Default: as the kit has
            it; a new kit "nobody".
        allow: What a job without code may name in addition: class paths of components (FLARE calls
            them with the arguments that the job gives), and installed packages that offer
            strategies, weightings or backbones. Default: as the kit has it; a new kit nothing.
        force: Whether existing local files are replaced. Default False.

    Returns:
        The files written.

    Raises:
        KitError: `kit` is not a site's kit, has local files already, or a privacy.json without
            properties; or `byoc` or `allow` has an unknown value.
    """
    resources = _resources(kit, "a site", "fed_client.json", allow)
    resources["allow_log_streaming"] = False
    guard = {"id": "site_requests", "path": _SITE_REQUESTS}
    resources["components"].append(guard)
    if before := _present(kit, "resources.json"):
        _component(resources, "resource_manager").update(_component(before, "resource_manager"))
    managed = {"num_of_gpus": gpus, "mem_per_gpu_in_GiB": gpu_memory}
    _component(resources, "resource_manager").update(_given(managed))
    privacy, scope = _privacy(kit)
    given = {**asdict(SitePolicy()), **scope["properties"], **policy}
    scope["properties"] = _given(given)
    if (folder := policy.get("site_files")) and not is_demo_data(folder):
        scope["properties"]["site_files"] = str(Path(folder).absolute())
    for parts, own in (
        (scope.setdefault("task_result_filters", []), {"path": GATE}),
        (privacy.setdefault("components", []), guard),
    ):
        if own["path"] not in [part["path"] for part in parts]:
            parts.insert(0, own)
    files = {"resources.json": resources, "privacy.json": privacy}
    files["authorization.json"] = _rights(kit, byoc)
    return _write(kit, files, "fed_client.json", force)


def check_shared(kit: Path, share: Sequence[str], site_files: Path) -> str | None:
    """Check that a site labels the classes that it is to share.

    Args:
        kit: The site's startup kit.
        share: Names of classes.
        site_files: Folder with the file of the site.

    Returns:
        Why the names cannot be checked on this machine; None: they are correct.

    Raises:
        KitError: `kit` is not a site's kit, or its site has no class of such a name.
    """
    from cxr_study.data.sites.site_data import read_labels, site_classes  # imports pandas
    from cxr_study.data.sites.site_file import read_site_file

    _check_kit(kit, "a site", "fed_client.json")
    site = _read(kit / "startup/fed_client.json")["client"]["fqsn"].rpartition(".")[2]
    try:
        file = read_site_file(site_files / f"{site}.yaml")
        known = site_classes(file, read_labels(file)).classes
    except (OSError, ValueError) as error:
        return str(error)
    for name in share:
        if name not in known:
            raise KitError(
                f"{file.path} has the classes {', '.join(known)}, and no {name!r} to share; "
                f"{nearest(name, known)}."
            )
    return None


def localise_server(
    kit: Path,
    storage: Path,
    *,
    permitted: Mapping[str, Any] | None = None,
    byoc: str | None = None,
    allow: Sequence[str] | None = None,
    force: bool = False,
) -> list[Path]:
    """Write the server's local files into its startup kit.

    They are FLARE's defaults with these changes:

    - Jobs and snapshots are stored in `storage`; FLARE's default is /tmp.
    - No logs of sites are received: FLARE 2.9 writes them to the path that the sender names.
    - A job without code may name only this software's classes, and those in `allow`.
    - No messages between sites; see `server_requests`.
    - The classes that each site may contribute, if `permitted` is given.

    Args:
        kit: The server's startup kit.
        storage: Folder for what the server stores; made absolute.
        permitted: Site -> classes, or study -> such a table. Default None: unchanged; in a new kit
            every site may contribute the classes that it declares.
        byoc: As in `localise_site`.
        allow: As in `localise_site`.
        force: As in `localise_site`.

    Returns:
        The files written.

    Raises:
        KitError: As in `localise_site`.
    """
    resources = _resources(kit, "the server", "fed_server.json", allow)
    stored = storage.absolute()
    snapshots = resources["snapshot_persistor"]["args"]["storage"]["args"]
    snapshots["root_dir"] = str(stored / "snapshot-storage")
    _component(resources, "job_manager")["uri_root"] = str(stored / "jobs-storage")
    resources["components"] = [
        *(part for part in resources["components"] if part["id"] != "log_receiver"),
        {"id": "job_ids", "path": f"{_GUARD}.JobIds"},
        {"id": "server_requests", "path": _SERVER_REQUESTS},
    ]
    files = {"resources.json": resources, "authorization.json": _rights(kit, byoc)}
    if permitted is not None:
        files["privacy.json"], scope = _privacy(kit)
        scope["properties"]["permitted"] = dict(permitted)
    return _write(kit, files, "fed_server.json", force)


def _check_kit(kit: Path, kind: str, startup: str) -> None:
    if not (kit / "startup" / startup).is_file():
        raise KitError(
            f"{kit} is no startup kit of {kind}: it holds no startup/{startup}. Give the folder "
            "that `nvflare provision` or `nvflare package` made."
        )


def _given(values: Mapping[str, Any]) -> Contents:
    return {key: value for key, value in values.items() if value is not None}


def _resources(kit: Path, kind: str, startup: str, allow: Sequence[str] | None) -> Contents:
    """FLARE's default resources.json of a kit, with what a job without code may name."""
    _check_kit(kit, kind, startup)
    resources = _read(kit / "local/resources.json.default")
    allow = _allowed(_present(kit, "resources.json")) if allow is None else allow
    classes = [name for name in allow if name.rpartition(".")[2][:1].isupper()]
    packages = [name for name in allow if name not in classes]
    _check_installed(packages)
    resources |= {
        "class_allow_list": [*ALLOWED, *classes],
        "class_list_enforcement_mode": "enforce",
    }
    allowed = {group: [_OURS, *packages] for group in _EXTENSION_GROUPS}
    guard = {"variables": _VARIABLES, "packages": allowed}
    resources["app_validator"] = {"path": f"{_GUARD}.JobFiles", "args": guard}
    return resources


def _present(kit: Path, name: str) -> Contents:
    """A local file that was written here before; empty where FLARE or the hospital wrote them."""
    file, resources = (kit / "local" / each for each in (name, "resources.json"))
    ours = resources.is_file() and f"{_GUARD}.JobFiles" in resources.read_text(encoding="utf-8")
    try:
        return _read(file) if ours and file.is_file() else {}
    except ValueError as error:
        raise KitError(f"{file} is no JSON ({error}). Correct it, or remove it.") from None


def _allowed(resources: Contents) -> list[str]:
    """What a kit's resources.json allows besides this software."""
    packages = resources.get("app_validator", {"args": {"packages": {}}})["args"]["packages"]
    names = dict.fromkeys([*resources.get("class_allow_list", []), *chain(*packages.values())])
    return [name for name in names if name not in (*ALLOWED, _OURS)]


def _check_installed(packages: Sequence[str]) -> None:
    """Refuse a name that is not an installed package with strategies, weightings or backbones."""
    points = [point for group in _EXTENSION_GROUPS for point in entry_points(group=group)]
    offered = {point.dist.name for point in points if point.dist}
    if unknown := [name for name in packages if name not in offered]:
        raise KitError(
            f"a class with its path, or an installed package that offers parts ("
            f"{', '.join(sorted(offered)) or 'there is none'}), may be allowed; "
            f"got {', '.join(unknown)}."
        )


def _component(resources: Contents, id_: str) -> Contents:
    """Arguments of a component of resources.json, by its id; changes to them are in the file."""
    return next(c for c in resources["components"] if c["id"] == id_)["args"]


def _privacy(kit: Path) -> tuple[Contents, Contents]:
    """Content of a kit's privacy.json, a new one if there is none, and its default scope."""
    file = kit / "local" / "privacy.json"
    content: Contents = {"scopes": [{"name": SCOPE, "properties": {}}], "default_scope": SCOPE}
    try:
        if file.is_file():
            content = _read(file)
        (scope,) = (one for one in content["scopes"] if one["name"] == content["default_scope"])
        scope["properties"] = {**scope["properties"]}
    except (LookupError, TypeError, ValueError):
        raise KitError(
            f"{file} needs 'scopes', of which one has 'properties' and the name in "
            "'default_scope'; it has none. Correct it, or remove it to start afresh."
        ) from None
    return content, scope


def scope_properties(kit: Path) -> Contents:
    """Properties of the default scope in a kit's local/privacy.json; empty without the file."""
    return _privacy(kit)[1]["properties"]


def granted(kit: Path) -> str:
    """What a kit's local files grant to jobs beyond the defaults, in words."""
    byoc = _who_brings_code(_present(kit, "authorization.json"))
    allowed = _allowed(_present(kit, "resources.json"))
    return f"code by {byoc}" + f", allowed: {', '.join(allowed)}" * bool(allowed)


def _rights(kit: Path, byoc: str | None) -> Contents:
    """FLARE's default rights, changed by the above groups of rights and by `byoc`."""
    byoc = _who_brings_code(_present(kit, "authorization.json")) if byoc is None else byoc
    if byoc not in BYOC_ROLES:
        raise KitError(f"who may bring code is one of {', '.join(BYOC_ROLES)}; got {byoc!r}.")
    rights = _read(kit / "local/authorization.json.default")
    permissions = rights["permissions"]
    for role, own in permissions.items():
        if isinstance(own, str):  # FLARE's shorthand: the same value for every right
            own = dict.fromkeys(permissions["lead"], own)
        if role in BYOC_ROLES["anyone"]:
            own |= dict.fromkeys(PRIVATE_RIGHTS, "o:site") | dict.fromkeys(OPEN_RIGHTS, "any")
            if role not in BYOC_ROLES[byoc]:
                own["byoc"] = "none"
        own |= dict.fromkeys(ERROR_RIGHTS, own.get("download_job", "none"))
        permissions[role] = own
    return rights


def _who_brings_code(rights: Contents) -> str:
    """The key of `BYOC_ROLES` of an authorization.json; "nobody" for roles that have no key."""
    own = {role: rights.get("permissions", {}).get(role, "none") for role in BYOC_ROLES["anyone"]}
    rule = {role: of if isinstance(of, str) else of.get("byoc") for role, of in own.items()}
    roles = tuple(role for role, who in rule.items() if who not in (None, "none"))
    return next((name for name, of in BYOC_ROLES.items() if of == roles), "nobody")


def _write(kit: Path, files: Mapping[str, Contents], startup: str, force: bool) -> list[Path]:
    """Write local files of a kit, and link the files that FLARE searches for into its root.

    FLARE takes the first file of the name that it finds in the kit. The root is searched first, so
    a file of a job cannot take the place of the kit's.
    """
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
            path.chmod(0o600)  # it may name folders, and classes that stay at the site
    for name, folder in {**_FOUND_BY_NAME, startup: "startup"}.items():
        (kit / name).unlink(missing_ok=True)
        if (kit / folder / name).is_file():
            (kit / name).symlink_to(Path(folder, name))
        else:
            (kit / name).write_text("{}\n", encoding="utf-8")
    return list(paths)


def _read(file: Path) -> Contents:
    return json.loads(file.read_text(encoding="utf-8"))
