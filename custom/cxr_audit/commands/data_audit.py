"""The command that reports on sites' data: `surgagg data audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from cxr_study.cli.common import say
from cxr_study.cli.data import Size
from cxr_study.cli.options import command

app = typer.Typer()


@command(app)
def audit(
    site_files: Annotated[list[Path] | None, Argument()] = None,
    *,
    out: Path,
    shared: list[Path] | None = None,
    statistics: list[Path] | None = None,
    size: Size = 64,
    min_count: Annotated[int, Option(min=2)] = 10,
    share_hashes: bool = False,
) -> None:
    """Report what the sites' data are: counts, policies, overlap, pictures. HTML and JSON.

    Options:
        site_files: Site files, e.g. sites/*.yaml.
        out: Folder for audit.html and audit.json.
        shared: Instead: what another site shared; may be repeated.
        statistics: Instead: the statistics that a census job wrote; may be repeated.
        min_count: Counts of fewer patients are not shared.
        share_hashes: Share hashes of images too, by which sites find that they have equal ones.

    Example:
        surgagg data audit sites/*.yaml --out audit
    """
    if bool(site_files) == bool(shared or statistics):
        raise typer.BadParameter("needs site files, or --shared and --statistics; not both.")
    from cxr_audit.census.flare_counts import from_flare_job
    from cxr_audit.census.shareable_census import read_shared
    from cxr_audit.report.audit_report import write_audit, write_cross_site
    from cxr_study.common import progress

    if site_files:
        with progress.bar("reading images") as report:
            page = write_audit(
                site_files,
                out,
                size=size,
                min_count=min_count,
                progress=report,
                share_hashes=share_hashes,
            )
        say(f"shared  {out / 'shared'}  (what a site may send to others)")
    else:
        parts = [read_shared(path) for path in shared or ()]
        parts += [part for path in statistics or () for part in from_flare_job(path)]
        page = write_cross_site(parts, out)
    say(f"audit   {page}")
