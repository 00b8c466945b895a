"""The commands about images: `surgagg data prepare`, `audit` and `phantom`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from typer import Argument, Option

from cxr_study.cli.data import Seed, SiteFiles, Size, app
from cxr_study.cli.run import say, split

MOST_NOTED = 20


@app.command("prepare", epilog="Example:  surgagg data prepare sites/*.yaml --size 224")
def prepare_images(site_files: SiteFiles, size: Size = 64) -> None:
    """Decode all images of sites once, so that training never does.

    Images that are missing, unreadable, constant or duplicates are listed and left out. Exit code 1
    if they are more than the site file's 'bad_images'.
    """
    from cxr_study.common import progress
    from cxr_study.data.images import image_store
    from cxr_study.data.sites.site_data import check_disjoint, load_labels, prepare
    from cxr_study.data.sites.site_file import read_site_file

    loaded = [load_labels(read_site_file(path)) for path in site_files]
    for note in check_disjoint(loaded):
        say(f"note: {note}")
    failed = False
    for labels in loaded:
        name = labels.site.site
        with progress.bar(f"{name}: decoding images") as report:
            _, prepared = prepare(labels, size, report)
        found = prepared.index["status"].value_counts()
        say(
            f"{name}: {found.get('ok', 0):,} of {len(prepared.index):,} images usable, "
            f"{prepared.decoded:,} decoded now; {prepared.folder}"
        )
        if prepared.bits and not labels.site.bits:
            fixed = f"'bits: {prepared.bits}' in the site file makes it so for good"
            say(f"{name}: 16-bit pictures are taken to have {prepared.bits} bits; {fixed}")
        try:
            image_store.check_limit(
                prepared, labels.site.bad_images, f"{labels.site.path}: key 'bad_images'"
            )
        except image_store.ImageError as error:
            say(f"surgagg: {error}", Console(stderr=True))
            failed = True
        else:
            for _, row in prepared.index[prepared.index["status"] != "ok"].iterrows():
                say(f"  left out: {row['image']} {row['status']} {row['detail']}".rstrip())
        noted = prepared.index[(prepared.index["status"] == "ok") & (prepared.index["notes"] != "")]
        if len(noted):
            say(f"{name}: {len(noted):,} images are used that may not be what they should be:")
        for _, row in noted.head(MOST_NOTED).iterrows():
            say(f"  {row['image']}: {row['notes']}")
        if len(noted) > MOST_NOTED:
            say(f"  and {len(noted) - MOST_NOTED:,} more")
        if len(noted):
            say("  'contradictions: refuse' in the site file leaves them out")
    if failed:
        raise typer.Exit(1)


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


@app.command(epilog="Example:  surgagg data phantom data/phantom --sites nih,mimic")
def phantom(
    folder: Annotated[Path, Argument(help="New folder.")],
    sites: Annotated[str, Option(help="Of nih, chexpert and mimic, by comma.")] = ("nih,chexpert"),
    images: Annotated[int, Option(help="Frontal images of each site.", min=1)] = 2000,
    size: Size = 64,
    seed: Seed = 0,
    rare_at_least: Annotated[
        float, Option(help="Least share of images with a finding; 0: as in the real data.")
    ] = 0.1,
) -> None:
    """Draw chest radiographs in the layouts of NIH ChestX-ray14, CheXpert and MIMIC with CXR-LT."""
    from cxr_phantom.writers.write_phantom import write_phantom
    from cxr_study.common import progress

    with progress.bar("drawing") as report:
        write_phantom(
            folder,
            sites=split(sites),
            images_per_site=images,
            size=size,
            seed=seed,
            rare_at_least=rare_at_least,
            progress=report,
        )
    for site_file in sorted((folder / "sites").glob("*.yaml")):
        say(f"site file  {site_file}")
