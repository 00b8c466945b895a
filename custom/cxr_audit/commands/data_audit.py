"""The command that reports on sites' data: `surgagg data audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from cxr_study.cli.data import Size
from cxr_study.cli.run import say

app = typer.Typer()


@app.command(epilog="Example:  surgagg data audit sites/*.yaml --out audit")
def audit(
    out: Annotated[Path, Option(help="Folder for audit.html and audit.json.")],
    site_files: Annotated[
        list[Path] | None, Argument(help="Site files, e.g. sites/*.yaml.")
    ] = None,
    shared: Annotated[
        list[Path] | None, Option(help="Instead: what another site shared; may be repeated.")
    ] = None,
    statistics: Annotated[
        list[Path] | None,
        Option(help="Instead: the statistics that a census job wrote; may be repeated."),
    ] = None,
    size: Size = 64,
    min_count: Annotated[int, Option(help="Counts of fewer patients are not shared.", min=2)] = 10,
    share_hashes: Annotated[
        bool,
        Option(help="Share hashes of images too, by which sites find that they have equal ones."),
    ] = False,
) -> None:
    """Report what the sites' data are: counts, policies, overlap, pictures. HTML and JSON."""
    if bool(site_files) == bool(shared or statistics):
        raise typer.BadParameter("needs site files, or --shared and --statistics; not both.")
    from cxr_audit.census.flare_counts import from_flare_job
    from cxr_audit.census.shareable_census import read_shared
    from cxr_audit.report.audit_report import write_audit, write_cross_site
    from cxr_study.common import progress

    if site_files:
        with progress.bar("looking at images") as report:
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
