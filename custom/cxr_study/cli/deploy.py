"""The commands for real FLARE systems: `surgagg deploy`, and `surgagg deploy kit`."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from typer import Argument, Option

from cxr_study.cli import poc
from cxr_study.cli import run as cli_run
from cxr_study.cli.poc import Retries
from cxr_study.cli.report import make_report
from cxr_study.cli.run import asked, check_room, console, make_room, say, split
from cxr_study.common.progress import Steps
from cxr_study.deployment.site_kit import BYOC_ROLES, KitError, localise_server, localise_site
from cxr_study.jobs import code_shipping, job_folder, job_templates
from cxr_study.jobs.command_line_settings import parse
from cxr_study.runs.finished_run import RESULTS, JobFailedError, finished_run, write_facts
from cxr_study.runs.run_request import check_site_files
from surgical_aggregation.aggregation.strategy import STRATEGIES
from surgical_aggregation.site.contract.site_policy import SitePolicy
from surgical_aggregation.wire.privacy_json import by_study, is_class_names

app = typer.Typer(
    no_args_is_help=True,
    help="Run jobs on FLARE's real services: in a POC on this machine, or between hospitals.",
    epilog="Example:  surgagg deploy poc run surgical --phantom      Exit codes: 0 done, 1 the job "
    "failed, 2 wrong use, 3 done without one of the sites.",
)
kit_app = typer.Typer(
    no_args_is_help=True,
    help="Put the policy, resources and rights of a site or the server into its startup kit.",
    epilog="Example:  surgagg deploy kit site nih --site-files /data/sites      Exit codes: 0 "
    "done, 2 wrong use.",
)
Kit = Annotated[Path, Argument(help="Its folder, made by `nvflare provision`.")]
Byoc = Annotated[str, Option("--byoc", help=f"Who may bring code: {', '.join(BYOC_ROLES)}.")]
Replace = Annotated[bool, Option("--force", help="Replace files that are there already.")]
app.add_typer(kit_app, name="kit")
app.add_typer(poc.app, name="poc")

_WAYS = "; ".join(f"{way}: {needs}" for way, needs in code_shipping.WAYS.items())


@app.command(
    epilog="Example:  surgagg deploy job personalised --strategy fedbn --sites a,b --out my-job"
)
def job(
    method: Annotated[str, Argument(help=f"One of {', '.join(job_templates.JOBS)}.")],
    out: Annotated[Path, Option(help="New folder for the job.")],
    strategy: Annotated[
        str | None, Option(help=f"One of {', '.join(STRATEGIES)}. Default: the method's own.")
    ] = None,
    sites: cli_run.Sites = "nih,chexpert",
    preset: cli_run.Preset = None,
    settings: cli_run.Settings = None,
    code: Annotated[str, Option(help=f"{_WAYS}.")] = "installed",
) -> None:
    """Write the job folder of a method, ready to submit.

    It names classes of this software, and --code says how they get to the server and the sites.
    """
    for_all, per_site = parse(settings or [])
    job_templates.configure(
        method,
        out,
        sites=split(sites),
        strategy=strategy,
        preset=preset,
        settings=for_all,
        per_site=per_site,
        code=code,
    )
    say(f"job      {out}")
    say(f"submit   nvflare job submit -j {out}")


@app.command(
    epilog="Example:  surgagg deploy submit my-job --kit lead@university.org --out runs/first"
)
def submit(
    job: cli_run.Job,
    kit: Annotated[Path, Option(help="Your startup kit, that of a lead or project admin.")],
    out: Annotated[Path, Option(help="New folder for everything the run makes.")],
    sites: cli_run.Sites = "",
    site_files: Annotated[
        Path | None,
        Option(help="Folder of <site>.yaml, if you have the sites' data: a full report."),
    ] = None,
    preset: cli_run.Preset = None,
    settings: cli_run.Settings = None,
    retries: Retries = 3,
    server_timeout: Annotated[
        float, Option(min=0, help="Seconds to wait for a server that has gone away.")
    ] = 3600.0,
    force: cli_run.Force = False,
) -> None:
    """Submit a job to the server that your startup kit names, and see it to its end.

    A job that breaks (a process was killed, the server restarted) is continued from its last whole
    round, and a server that is gone is waited for. An interrupt aborts it; another one leaves it to
    itself. Models, records and what the sites measured on their test splits are downloaded.
    """
    names, for_all, per_site = asked(job, sites, preset, settings)
    check_site_files(site_files, names)
    check_room(out, force)
    from cxr_study.deployment import deployed_run
    from cxr_study.deployment.flare_session import FlareSession

    def say_waiting(seconds: float) -> None:
        console.print(f"the server does not answer; waiting for up to {seconds:.0f} s")

    session = FlareSession(kit, patience=server_timeout, on_wait=say_waiting)
    with session:  # a kit that does not work shows before anything is removed
        make_room(out, force)
        copy = out / "job"
        job_folder.copy(job, copy, sites=names, settings=for_all, per_site=per_site)
        code_shipping.unmark(copy)
        deployed = deployed_run.DeployedRun(copy, out / RESULTS, retries)
        servers = deployed_run.run(deployed, session, Steps(console))
    jobs = [server.parent.name for server in servers]
    write_facts(out, site_files, jobs, elsewhere=site_files is None)
    make_report(finished_run(out), out / "report", job.name, console)()


@app.command(
    epilog="Example:  surgagg deploy check my-job --kit lead@university.org      Exit codes: 0 all "
    "sites can take part, 1 one cannot, 2 wrong use."
)
def check(
    job: cli_run.Job,
    kit: Annotated[Path, Option(help="Your startup kit, that of a lead or project admin.")],
    sites: cli_run.Sites = "",
    preset: cli_run.Preset = None,
    settings: cli_run.Settings = None,
) -> None:
    """Ask the sites of a job whether they can take part, and train nothing.

    Every job begins with these questions: classes that the server permits, versions, the network,
    disk, certificate, the site's files. What only the site may read is in its own notes.
    """
    names, for_all, per_site = asked(job, sites, preset, settings, check_only=True)
    from cxr_study.deployment import dry_run
    from cxr_study.deployment.flare_session import FlareSession

    with TemporaryDirectory() as folder, FlareSession(kit) as session:
        copy = Path(folder) / "job"
        job_folder.copy(job, copy, sites=names, settings=for_all, per_site=per_site)
        code_shipping.unmark(copy)
        answers, failed = dry_run.ask(copy, session, Path(folder), Steps(console))
    for one in answers:
        say(f"{one['site']:<12} {dry_run.told(one)}")
    if failed or any(one["reason"] for one in answers):
        raise JobFailedError(failed or "not all sites can take part.")


@app.command(
    epilog="Example:  surgagg deploy jobs server --older-than 90 --remove      Lists only, without "
    "--remove."
)
def jobs(
    kit: Kit,
    job: Annotated[
        list[str] | None, Option(metavar="ID", help="This one alone; may be repeated.")
    ] = None,
    older_than: Annotated[float, Option(min=0, help="Days without a change.")] = 0,
    remove: Annotated[bool, Option("--remove", help="Remove what is listed.")] = False,
) -> None:
    """List what jobs have left in the kit of a server or site, or remove it.

    That is their checkpoints, which later jobs may go on from, a site's local notes, and FLARE's
    folders. The server's job store is FLARE's: delete_job in the admin console.
    """
    from rich.table import Table

    from cxr_study.deployment.job_files import JobFilesError, job_files

    if remove and not (job or older_than):
        raise JobFilesError("--remove needs --job or --older-than, to say of which jobs.")
    found = job_files(kit, job or (), older_than)
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("job", no_wrap=True)
    table.add_column("MB", justify="right")
    table.add_column("days", justify="right")
    table.add_column("")
    for one in found:
        told = "running: stays" if one.running else "removed" if remove else ""
        table.add_row(one.job, f"{one.size / 2**20:,.1f}", f"{one.days:.1f}", told)
        if remove and not one.running:
            one.remove()
    console.print(table) if found else say("no job has left anything of that kind")


@kit_app.command(
    epilog="Example:  surgagg deploy kit site nih --site-files /data/sites --min-positives 20 "
    "--gpus 1"
)
def site(
    kit: Kit,
    site_files: Annotated[
        Path | None, Option(help="Folder of <site>.yaml. Default: CXR_SITES, at its start.")
    ] = None,
    share: Annotated[
        list[str] | None,
        Option(metavar="CLASS", help="A class it shares; may be repeated. Default: all."),
    ] = None,
    min_images: Annotated[
        int, Option(min=0, help="With fewer training images the site takes no part.")
    ] = 0,
    min_positives: Annotated[
        int, Option(min=0, help="A class with fewer positive labels takes no part.")
    ] = 0,
    report_counts: Annotated[
        bool, Option("--report-counts", help="Labels per class may be sent.")
    ] = False,
    report_features: Annotated[
        bool, Option("--report-features", help="Means of its images' features may be sent.")
    ] = False,
    gpus: Annotated[int, Option(min=0, help="GPUs that jobs may use.")] = 0,
    gpu_memory: Annotated[int, Option(min=0, help="Memory of each, GiB.")] = 0,
    byoc: Byoc = "nobody",
    force: Replace = False,
) -> None:
    """Write a hospital's policy, resources and rights into its site's kit.

    They are FLARE's own, with the classes of this software allowed, error logs kept at the site,
    its files readable for the site alone, and the policy's filter on all that leaves.
    """
    policy = SitePolicy(
        share=tuple(share) if share else None,
        min_images=min_images,
        min_positives=min_positives,
        report_counts=report_counts,
        report_features=report_features,
        site_files=None if site_files is None else str(site_files.absolute()),
    )
    written = localise_site(kit, policy, gpus=gpus, gpu_memory=gpu_memory, byoc=byoc, force=force)
    _say_written(written)
    if site_files is None:
        say("note     no --site-files: CXR_SITES must say where they are when this site starts.")


@kit_app.command(epilog="Example:  surgagg deploy kit server server --storage /data/flare")
def server(
    kit: Kit,
    storage: Annotated[
        Path, Option(help="Folder for jobs, snapshots and logs; FLARE's own is in /tmp.")
    ],
    permitted: Annotated[
        Path | None,
        Option(
            help="Yaml of site: \\[classes] that each may contribute, or of such for each study."
        ),
    ] = None,
    byoc: Byoc = "nobody",
    force: Replace = False,
) -> None:
    """Write the server's storage, rights and table of permitted classes into its kit."""
    table = None if permitted is None else _permitted(permitted)
    _say_written(localise_server(kit, storage, permitted=table, byoc=byoc, force=force))


def _permitted(file: Path) -> dict[str, Any]:
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
