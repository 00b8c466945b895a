"""The commands for startup kits: `surgagg deploy kit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from cxr_study.cli.run import say
from cxr_study.deployment.site_kit import BYOC_ROLES, KitError, localise_server, localise_site
from surgical_aggregation.site.contract.site_policy import SitePolicy
from surgical_aggregation.wire.privacy_json import is_class_names

app = typer.Typer(
    no_args_is_help=True,
    help="Put the policy, resources and rights of a site or the server into its startup kit.",
    epilog="Example:  surgagg deploy kit site nih --site-files /data/sites      Exit codes: 0 "
    "done, 2 wrong use.",
)
Kit = Annotated[Path, Argument(help="Its folder, made by `nvflare provision`.")]
Byoc = Annotated[str, Option("--byoc", help=f"Who may bring code: {', '.join(BYOC_ROLES)}.")]
Replace = Annotated[bool, Option("--force", help="Replace files that are there already.")]


@app.command(
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
    byoc: Byoc = "anyone",
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


@app.command(epilog="Example:  surgagg deploy kit server server --storage /data/flare")
def server(
    kit: Kit,
    storage: Annotated[
        Path, Option(help="Folder for jobs, snapshots and logs; FLARE's own is in /tmp.")
    ],
    permitted: Annotated[
        Path | None, Option(help="Yaml of site: \\[classes] that each may contribute.")
    ] = None,
    byoc: Byoc = "anyone",
    force: Replace = False,
) -> None:
    """Write the server's storage, rights and table of permitted classes into its kit."""
    table = None if permitted is None else _permitted(permitted)
    _say_written(localise_server(kit, storage, permitted=table, byoc=byoc, force=force))


def _permitted(file: Path) -> dict[str, list[str]]:
    from cxr_study.common.yaml_files import read_yaml

    content = read_yaml(file, "table", KitError)
    if not all(map(is_class_names, content.values())):
        raise KitError(
            f"{file} needs a list of class names for each site, e.g. nih: [Edema, Mass]; got "
            f"{content!r}."
        )
    return content


def _say_written(written: list[Path]) -> None:
    for file in written:
        say(f"written  {file}")
