"""The commands `surgagg deploy kit` (startup kits) and `surgagg deploy poc` (FLARE's POC here)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from cxr_deployment.site_kit import (
    BYOC_ROLES,
    KitError,
    check_shared,
    granted,
    localise_server,
    localise_site,
    scope_properties,
)
from cxr_study.cli import options
from cxr_study.cli.common import check_data, check_folder, clear_folder, console, joined, say, split
from cxr_study.cli.options import command
from cxr_study.cli.run import make_report
from cxr_study.common.offered_data import is_demo_data
from cxr_study.common.progress import Steps
from cxr_study.jobs.job import Job
from cxr_study.runs.finished_run import finished_run
from cxr_study.runs.run_request import RunRequest, check_body
from surgical_aggregation.wire.privacy_json import by_study, is_class_names

if TYPE_CHECKING:
    from cxr_deployment.poc_system import PocSystem

poc_app = typer.Typer(
    no_args_is_help=True,
    help="Run jobs on real FLARE services on this machine, in one command or step by step.",
    epilog="Example:  surgagg deploy poc run surgical --phantom      Exit codes: 0 done, 1 the job "
    "failed, 2 wrong use, 3 done without one of the sites.",
)

kit_app = typer.Typer(
    no_args_is_help=True,
    help="Write the policy, resources and rights of a site or the server into its startup kit.",
    epilog="Example:  surgagg deploy kit site nih --site-files /data/sites      Exit codes: 0 "
    "done, 2 wrong use.",
)
Kit = Annotated[Path, Argument(help="Folder of the kit, made by `nvflare provision`.")]
Byoc = Annotated[
    str | None,
    Option("--byoc", help=f"Who may bring code: {', '.join(BYOC_ROLES)} (default)."),
]
Allow = Annotated[
    list[str] | None,
    Option(
        metavar="NAME",
        help="A component class (package.module.Class) or an installed package whose parts jobs "
        "without code may use, besides this software's; may be repeated.",
    ),
]
Replace = Annotated[bool, Option("--force", help="Replace existing files.")]

Folder = Annotated[Path, Option(help="Folder of the POC, with all its files.")]
Project = Annotated[Path, Option(help="FLARE's project file, with the participants.")]
Port = Annotated[
    int | None, Option(min=1, max=65535, help="Port of the server. Default: a free one.")
]
Retries = Annotated[
    int, Option(min=0, help="How often a broken job is continued from its last round.")
]
HERE = Path("runs/poc")
"""Default folder of a POC."""

PROJECT = Path("poc/project.yml")
"""This repository's project file, from its root."""


@command(poc_app)
def run(
    job: options.JobName,
    out: Path = Path("runs/poc-run"),
    sites: options.Sites = "",
    site_files: options.SiteFiles = None,
    phantom: options.Phantom = False,
    initial_body: options.InitialBody = None,
    preset: options.Preset = None,
    settings: options.Settings = None,
    project: Project = PROJECT,
    port: Port = None,
    retries: Retries = 3,
    keep: Annotated[bool, Option("--keep")] = False,
    force: options.Force = False,
) -> None:
    """Prepare a POC, start it, run a job in it, stop it, clean up, and report.

    Server and sites are separate processes that communicate over TLS, as in a hospital network. A
    broken job is continued from its last complete round. Nothing keeps running, and your own FLARE
    configuration is not changed.

    Options:
        out: New folder for the results.
        keep: Leave the POC running.

    Example:
        surgagg deploy poc run surgical --phantom --set num_rounds=6
    """
    check_data(site_files, phantom)
    body = {} if initial_body is None else {"initial_body": str(initial_body.absolute())}
    asked = Job.asked(
        job, sites=split(sites), preset=joined(preset), given=settings or (), settings=body
    )
    inputs = [site_files, initial_body, asked.folder.path if asked.folder else None]
    check_folder(out, force, inputs=inputs)
    from cxr_deployment import poc_run

    request = RunRequest(asked, out, site_files)
    poc_run.check(request, project, port)
    check_body(site_files, initial_body)
    poc_run.system(request).stop()  # if an earlier run left one running
    clear_folder(out, force)
    poc_run.run(request, project, console, port=port, retries=retries, keep=keep)
    make_report(finished_run(out), out / "report")


@command(poc_app)
def prepare(
    folder: Folder = HERE,
    project: Project = PROJECT,
    sites: str = "",
    site_files: options.SiteFiles = None,
    phantom: options.Phantom = False,
    port: Port = None,
    encrypted: Annotated[bool, Option("--encrypted")] = False,
) -> None:
    """Create certificates and startup kits.

    Options:
        sites: Names, separated by commas. Default: the project's.
        encrypted: Also create keys for homomorphic encryption.

    Example:
        surgagg deploy poc prepare --sites a,b --site-files sites
    """
    check_data(site_files, phantom)
    system = _system(folder)
    with Steps(console).step("prepare") as details:
        system.prepare(
            project,
            sites=split(sites) or None,
            port=port,
            site_files=site_files,
            encrypted=encrypted,
        )
        details.append(str(system))
    for role, kit in {"lead": system.lead, "server": system.server}.items():
        say(f"{role:<10}{kit}")


@command(poc_app)
def start(folder: Folder = HERE) -> None:
    """Start server and sites, and wait until all are connected.

    Example:
        surgagg deploy poc start
    """
    system = _system(folder)
    with Steps(console).step("start", str(system)):
        system.start()


@command(poc_app)
def stop(folder: Folder = HERE) -> None:
    """Stop all processes of the POC, in any state; a running job is aborted.

    Example:
        surgagg deploy poc stop
    """
    system = _system(folder)
    if not system.running:
        _ = system.project  # raises for a misspelt folder, which must not look like success
    with Steps(console).step("stop"):
        system.stop()


@command(poc_app)
def clean(folder: Folder = HERE) -> None:
    """Stop the POC and remove its folder.

    Example:
        surgagg deploy poc clean
    """
    with Steps(console).step("clean", str(folder)):
        _system(folder).clean()


@command(kit_app)
def site(
    kit: Kit,
    site_files: str | None = None,
    share: Annotated[list[str] | None, Option(metavar="CLASS")] = None,
    min_images: Annotated[int | None, Option(min=0)] = None,
    min_positives: Annotated[int | None, Option(min=0)] = None,
    report_counts: Annotated[bool | None, Option("--report-counts/--no-report-counts")] = None,
    report_features: Annotated[
        bool | None, Option("--report-features/--no-report-features")
    ] = None,
    refuse_union_head: Annotated[
        bool | None, Option("--refuse-union-head/--no-refuse-union-head")
    ] = None,
    gpus: Annotated[int | None, Option(min=0)] = None,
    gpu_memory: Annotated[int | None, Option(min=0)] = None,
    byoc: Byoc = None,
    allow: Allow = None,
    force: Replace = False,
) -> None:
    """Write a hospital's policy, resources and rights into the startup kit of its site.

    These are FLARE's defaults with five changes: only listed classes are allowed, error logs stay
    at the site, only the site can read its files, no other site is answered, and the policy's
    filter is applied to everything that leaves the site. With --force a kit keeps what it has of
    every option that is not given.

    Options:
        site_files: Folder of <site>.yaml, or phantom. Default: CXR_SITES when the site starts.
        share: A class that the site shares, spelt as in its file; may be repeated. Default: all.
        min_images: The site does not participate with fewer training images.
        min_positives: A class is not shared with fewer positive labels.
        report_counts: Allow sending the number of labels per class.
        report_features: Allow sending mean features of images.
        refuse_union_head: Stay out of jobs that tell every site the classes of all sites.
        gpus: GPUs that jobs may use. Default: 0.
        gpu_memory: Memory of each GPU, GiB. Default: 0.

    Example:
        surgagg deploy kit site nih --site-files /data/sites --min-positives 20 --gpus 1
    """
    asked = {
        "share": share or None,
        "min_images": min_images,
        "min_positives": min_positives,
        "report_counts": report_counts,
        "report_features": report_features,
        "refuse_union_head": refuse_union_head,
        "site_files": site_files,
    }
    given = {key: value for key, value in asked.items() if value is not None}
    folder = {**scope_properties(kit), **given}.get("site_files")
    unreadable = None
    if folder and not is_demo_data(folder):
        unreadable = check_shared(kit, share or (), Path(folder))
    written = localise_site(
        kit, given, gpus=gpus, gpu_memory=gpu_memory, byoc=byoc, allow=allow or None, force=force
    )
    _say_written(written)
    say(f"grants   {granted(kit)}")
    say(f"policy   {json.dumps(scope_properties(kit), ensure_ascii=False)}")
    if folder is None:
        say("note     no --site-files: set CXR_SITES to their folder when this site starts.")
        unreadable = "no --site-files" if share else None
    if unreadable:
        say(f"note     {'the names of --share were not checked: ' * bool(share)}{unreadable}")


@command(kit_app)
def server(
    kit: Kit,
    *,
    storage: Path,
    permitted: Path | None = None,
    byoc: Byoc = None,
    allow: Allow = None,
    force: Replace = False,
) -> None:
    r"""Write the server's storage, rights and table of permitted classes into its kit.

    Options:
        storage: Folder for jobs and snapshots; FLARE's default is in /tmp.
        permitted: YAML, site: \[classes] that it may contribute; or such a table per study.

    Example:
        surgagg deploy kit server server --storage /data/flare
    """
    table = None if permitted is None else _permitted(permitted)
    _say_written(
        localise_server(kit, storage, permitted=table, byoc=byoc, allow=allow or None, force=force)
    )
    say(f"grants   {granted(kit)}")
    for study, sites in (table if table and by_study(table) else {"": table or {}}).items():
        for name, classes in sites.items():
            say(f"permits  {f'{study}: ' if study else ''}{name}: {', '.join(classes)}")


def _permitted(file: Path) -> dict[str, Any]:
    """Read and check the table of permitted classes, or of one table for each study."""
    from cxr_study.common.yaml_files import read_yaml

    content: dict[str, Any] = read_yaml(file, "table", KitError)
    for table in content.values() if by_study(content) else [content]:
        if not all(map(is_class_names, table.values())):
            raise KitError(
                f"{file} needs a list of class names for each site, e.g. nih: [Edema, Mass], or "
                f"such a table for each study; got {content!r}."
            )
    return content


def _say_written(written: list[Path]) -> None:
    for file in written:
        say(f"written  {file}")


def _system(folder: Path) -> PocSystem:
    from cxr_deployment.poc_system import PocSystem  # imports FLARE

    return PocSystem(folder)
