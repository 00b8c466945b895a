"""Shared censuses as counts of FLARE's statistics, for the job `jobs/census`.

A cell of a census is a feature with a count: "sex: F", "label positive: Edema". A withheld cell is
left out; an empty one is 0. What is not a count becomes a feature with count 1: "uncertain zeros:
Edema", "blank: negative". All belong to one data set, because FLARE aborts a job where a data set
has no feature at a site. Hashes of images are left out.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from cxr_audit.census.census import AGES, SEXES, STATES, VIEW_NAMES
from cxr_audit.census.pixels import BINS
from cxr_audit.census.shareable_census import Cells, CensusError, SharedCensus, checked

DATASET = "census"
"""Name of the one data set."""

_GLOBAL = "Global"  # FLARE's name for the sum over the sites


def to_counts(census: SharedCensus) -> dict[str, int]:
    """A shared census as counts by feature.

    Args:
        census: What a site shares.

    Returns:
        Feature -> count; see the module's docstring.
    """
    counts: dict[str, int | None] = {
        "total: images": census.images,
        "total: patients": census.patients,
        "total: min_count": census.min_count,
    }
    if census.blank is not None:
        counts[f"blank: {census.blank}"] = 1
    for name, cells in (("view", census.views), ("sex", census.sex), ("age", census.age)):
        counts |= {f"{name}: {cell}": images for cell, images in cells.items()}
    counts |= {f"intensity: {i}": share for i, share in enumerate(census.intensity or ())}
    for name, entry in census.classes.items():
        counts[f"uncertain {entry.uncertain}: {name}"] = 1
        counts |= {f"label {state}: {name}": images for state, images in entry.read.items()}
    return {feature: count for feature, count in counts.items() if count is not None}


def from_counts(site: str, counts: Mapping[str, int]) -> SharedCensus:
    """A shared census from its counts; the reverse of `to_counts`.

    Args:
        site: Name of the site.
        counts: Feature -> count.

    Raises:
        CensusError: They are not those of a census.
    """
    cells: dict[str, dict[str, int]] = {}
    for feature, count in counts.items():
        table, _, cell = feature.partition(": ")
        cells.setdefault(table, {})[cell] = count
    total = cells.get("total", {})
    if "images" not in total or "min_count" not in total:
        raise CensusError(
            f"site {site}: needs the counts of the job census, such as 'total: images'; got "
            f"{', '.join(list(counts)[:3]) or 'none'}."
        )

    def read(table: str, names: tuple[str, ...]) -> Cells:
        return {name: cells.get(table, {}).get(name) for name in names}

    intensity = cells.get("intensity")
    values = {
        "site": site,
        "min_count": total["min_count"],
        "images": total["images"],
        "patients": total.get("patients"),
        "blank": next(iter(cells.get("blank", ())), None),
        "views": read("view", VIEW_NAMES),
        "sex": read("sex", SEXES),
        "age": read("age", AGES),
        "classes": {
            name: {
                "uncertain": table.removeprefix("uncertain "),
                "read": {state: cells.get(f"label {state}", {}).get(name) for state in STATES},
            }
            for table, names in cells.items()
            if table.startswith("uncertain ")
            for name in names
        },
        "intensity": [intensity[str(i)] for i in range(BINS)] if intensity else None,
    }
    return checked(values, f"site {site}")


def from_flare_job(path: Path) -> list[SharedCensus]:
    """Read the shared censuses that the job `jobs/census` has collected.

    Args:
        path: The job's `statistics/census.json` at the server.

    Returns:
        The censuses, sorted by site.

    Raises:
        CensusError: The file is not JSON or holds something else.
    """
    try:
        features = json.loads(Path(path).read_text(encoding="utf-8"))
        sites: dict[str, dict[str, int]] = {}
        for feature, statistics in features.items():
            for site, counts in statistics["count"].items():
                if site != _GLOBAL:
                    sites.setdefault(site, {})[feature] = int(counts[DATASET])
        return [from_counts(site, sites[site]) for site in sorted(sites)]
    except CensusError as error:
        raise CensusError(f"{path}: {error}") from None
    except Exception as error:  # of many kinds
        raise CensusError(
            f"{path} needs counts by feature and site, as the job census writes them: {error}."
        ) from error
