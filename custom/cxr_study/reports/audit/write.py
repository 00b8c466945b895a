"""Takes the census of sites and writes it: a page for people, and the numbers as JSON."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from cxr_study.common.files import replace
from cxr_study.common.wording import Notice
from cxr_study.data.census import pixels
from cxr_study.data.census.across_sites import compare
from cxr_study.data.census.census import take
from cxr_study.data.census.samples import choose
from cxr_study.data.census.shareable_census import SharedCensus, share
from cxr_study.data.sites.patient_split import SplitError
from cxr_study.data.sites.site_data import SiteLabels, check_disjoint, load_labels, prepare
from cxr_study.data.sites.site_file import read_site_file
from cxr_study.reports.audit.render import SitePage, render

Report = Callable[[int, int], None]


def write_audit(
    site_files: Sequence[Path],
    folder: Path,
    *,
    size: int,
    min_count: int,
    progress: Report | None = None,
) -> Path:
    """Write the census of sites whose data are here.

    `folder` then holds `audit.html` and `audit.json`, which stay at the site: names of images,
    pictures, every count; and `shared/<site>.json`, the part that a site may send to others. What
    compares sites with each other, in the page and in `audit.json`, is made of shared parts alone.

    Args:
        site_files: At least one; their names are the sites'.
        folder: Made when it does not exist.
        size: Side of the images that are looked at, pixels.
        min_count: Smallest number of patients behind a count that is shared, at least 2.
        progress: Called as progress(done, total), first with images decoded, then looked at.

    Returns:
        Path of the HTML file.

    Raises:
        CensusError: Two sites have the same name, or one has too few patients to share anything.
        ValueError: A site's files are not as they should be; see `site_data.load_labels`.
    """
    loaded = [load_labels(read_site_file(path)) for path in site_files]
    pages, thumbnails = [], {}
    for labels in loaded:
        page, thumbnails[labels.site.site] = _site(labels, size, min_count, progress)
        pages.append(page)
    across = compare([page.shared for page in pages], thumbnails)
    values = {
        "sites": {
            page.census.site: {"local": asdict(page.census), "shared": page.shared.to_json()}
            for page in pages
        },
        "across": across.to_json(),
    }
    (folder / "shared").mkdir(parents=True, exist_ok=True)
    for page in pages:
        _write_json(folder / "shared" / f"{page.census.site}.json", page.shared.to_json())
    _write_json(folder / "audit.json", values)
    replace(folder / "audit.html", render(across, pages, _shared_patients(loaded)))
    return folder / "audit.html"


def write_cross_site(shared: Sequence[SharedCensus], folder: Path) -> Path:
    """Write what compares sites with each other, from what they shared.

    Args:
        shared: At least one, with different names.
        folder: Made when it does not exist; gets `cross_site.html` and `cross_site.json`.

    Returns:
        Path of the HTML file.

    Raises:
        CensusError: Two sites have the same name.
    """
    across = compare(shared, {})
    folder.mkdir(parents=True, exist_ok=True)
    values = {
        "sites": {site.site: {"shared": site.to_json()} for site in shared},
        "across": across.to_json(),
    }
    _write_json(folder / "cross_site.json", values)
    replace(folder / "cross_site.html", render(across, [], []))
    return folder / "cross_site.html"


def take_shared(
    labels: SiteLabels, size: int, min_count: int, progress: Report | None = None
) -> SharedCensus:
    """Take a site's census and make the part of it that may leave the site.

    Args:
        labels: What `site_data.load_labels` returns.
        size: Side of the images that are looked at, pixels.
        min_count: Smallest number of patients behind a count, at least 2.
        progress: As for `write_audit`.

    Raises:
        CensusError: The site has fewer patients than that.
    """
    return _site(labels, size, min_count, progress)[0].shared


def _site(
    labels: SiteLabels, size: int, min_count: int, progress: Report | None
) -> tuple[SitePage, pixels.Thumbnails]:
    table, prepared = prepare(labels, size, progress)
    census = take(labels, table, prepared.index)
    usable = (prepared.index["status"] == "ok").to_numpy()
    table, rows = table[usable], prepared.index["row"].to_numpy()[usable]
    intensity, values = pixels.measure(prepared.pixels, rows, progress)
    features = pixels.moments(values) if len(rows) else None
    shared = share(census, min_count, intensity, features)
    page = SitePage(census, shared, intensity, choose(table, prepared.pixels, rows))
    return page, pixels.Thumbnails(values, table["patient"].tolist())


def _shared_patients(loaded: Sequence[SiteLabels]) -> list[Notice]:
    try:
        check_disjoint(loaded)
    except SplitError as error:
        text = str(error)
        return [Notice("Patients at two sites.", f"{text[0].upper()}{text[1:].rstrip('.')}.")]
    return []


def _write_json(path: Path, values: object) -> None:
    replace(path, json.dumps(values, indent=1, allow_nan=False) + "\n")
