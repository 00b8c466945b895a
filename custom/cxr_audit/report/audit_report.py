"""Writes the audit of sites: a page, and the numbers as JSON."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from cxr_audit.census import census as cells
from cxr_audit.census.across_sites import Across, compare
from cxr_audit.census.shareable_census import SharedCensus
from cxr_audit.census.take_census import SiteCensus, take_census
from cxr_audit.report import audit_figures, audit_view
from cxr_study.common.errors import InputError
from cxr_study.common.files import atomic_write
from cxr_study.common.progress import Report
from cxr_study.common.wording import Notice
from cxr_study.data.sites.site_data import SiteLabels, check_disjoint, load_labels
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.reports.page.html import picture, template


def write_audit(
    site_files: Sequence[Path],
    folder: Path,
    *,
    size: int,
    min_count: int,
    progress: Report | None = None,
    share_hashes: bool = False,
) -> Path:
    """Write the audit of sites whose data are available.

    `audit.html` and `audit.json` stay at the site: they have names of images, pictures and every
    count. `shared/<site>.json` is what the site may send to others. Comparisons between sites, in
    the page and in `audit.json`, use the shared parts alone.

    Args:
        site_files: At least one; their names are the sites'.
        folder: Created where it does not exist.
        size: Side of the images, pixels.
        min_count: Smallest number of patients behind a count that is shared, at least 2.
        progress: See `take_census`.
        share_hashes: See `take_census`.

    Returns:
        Path of the page.

    Raises:
        CensusError: Two sites have the same name, or one has too few patients to share anything.
        ValueError: A site's files are unusable; see `site_data.load_labels`.
    """
    loaded = [load_labels(read_site_file(path)) for path in site_files]
    sites = [take_census(labels, size, min_count, progress, share_hashes) for labels in loaded]
    across = compare([site.shared for site in sites], [site.hashes for site in sites])
    (folder / "shared").mkdir(parents=True, exist_ok=True)
    values = {}
    for labels, site in zip(loaded, sites, strict=True):
        name, shared = labels.site.site, site.shared.to_json()
        _write_json(folder / "shared" / f"{name}.json", shared)
        notes = labels.read.attrs["notes"]
        values[name] = {"local": asdict(site.census), "shared": shared, "notes": notes}
    _write_json(folder / "audit.json", {"sites": values, "across": across.to_json()})
    atomic_write(folder / "audit.html", page(across, sites, _known(loaded)))
    return folder / "audit.html"


def write_cross_site(shared: Sequence[SharedCensus], folder: Path) -> Path:
    """Compare sites by what they shared, in `cross_site.json` and a page.

    Args:
        shared: At least one census.
        folder: Created where it does not exist.

    Returns:
        Path of the page.

    Raises:
        CensusError: Two sites have the same name.
    """
    across = compare(shared)
    folder.mkdir(parents=True, exist_ok=True)
    values = {site.site: {"shared": site.to_json()} for site in shared}
    _write_json(folder / "cross_site.json", {"sites": values, "across": across.to_json()})
    atomic_write(folder / "cross_site.html", page(across, [], []))
    return folder / "cross_site.html"


def page(across: Across, sites: Sequence[SiteCensus], known: Sequence[Notice]) -> str:
    """The page of all sites as HTML.

    Args:
        across: The sites compared.
        sites: Complete censuses of those whose data are available.
        known: Notices that come first.
    """
    given = {"across": across, "sites": sites, "known": known}
    return template(__package__).render(
        **given, cells=cells, figures=audit_figures, picture=picture, view=audit_view
    )


def _known(loaded: Sequence[SiteLabels]) -> list[Notice]:
    """Notices about patients and labels that need no image."""
    try:
        notes = check_disjoint(loaded)
    except InputError as error:
        notes = [str(error)]
    found = [("Patients at two sites.", note) for note in notes]
    for labels in loaded:
        found += [(f"Labels of {labels.site.site}.", note) for note in labels.read.attrs["notes"]]
    return [Notice(of, f"{note[0].upper()}{note[1:].rstrip('.')}.") for of, note in found]


def _write_json(path: Path, values: object) -> None:
    """Write JSON values atomically; NaN is refused."""
    atomic_write(path, json.dumps(values, indent=1, allow_nan=False) + "\n")
