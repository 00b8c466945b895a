"""What an audit says: headlines and rows, in words and numbers, without HTML."""

from collections.abc import Iterable, Mapping, Sequence

from cxr_study.common.wording import FEW_IMAGES, counted
from cxr_study.data.census.census import OUTCOMES, STATES, Census
from cxr_study.data.census.shareable_census import SharedCensus
from cxr_study.data.census.suppression import Cells
from cxr_study.reports.page.numbers import UNDEFINED, share


def ratio(part: int, whole: int) -> str:
    """Write a part of a whole as a percentage, or a dash where there is no whole."""
    return share(part / whole) if whole else UNDEFINED


def positive_share(census: Census, class_name: str) -> float | None:
    """Share of the labelled images that are positive; None where no image is labelled."""
    labels = census.classes[class_name].labels
    labelled = census.total.images - labels["not labelled"]
    return labels["positive"] / labelled if labelled else None


def headline(census: Census) -> str:
    """A site in one sentence."""
    patients = (
        f"{counted(census.total.images, 'image')} of {counted(census.total.patients, 'patient')}"
        if census.patients_known
        else f"{counted(census.total.images, 'image')}, patients unknown"
    )
    classes = counted(len(census.classes), "class", "classes")
    shares = {name: positive_share(census, name) for name in census.classes}
    known = {name: value for name, value in shares.items() if value is not None}
    text = f"{census.site}: {patients}, {classes}"
    if not known:
        return f"{text}; no image is labelled."
    rarest, commonest = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
    return (
        f"{text}; positive from {share(known[rarest])} ({rarest}) to "
        f"{share(known[commonest])} ({commonest})."
    )


def across_headline(sites: Sequence[SharedCensus]) -> str:
    """All sites in one sentence."""
    holders = {name: sum(name in site.classes for site in sites) for name in union(sites)}
    everywhere = sum(number == len(sites) for number in holders.values())
    alone = sum(number == 1 for number in holders.values())
    images = counted(sum(site.images for site in sites), "image")
    return (
        f"{counted(len(sites), 'site')} with {images} label "
        f"{counted(len(holders), 'class', 'classes')}: {everywhere or 'none'} at every site, "
        f"{alone or 'none'} at one alone."
    )


def union(sites: Sequence[SharedCensus]) -> list[str]:
    """Classes of any site, those of most sites first."""
    holders = {name: [name in site.classes for site in sites] for s in sites for name in s.classes}
    return sorted(holders, key=lambda name: (-sum(holders[name]), holders[name][::-1], name))


def policy(census: Census) -> str:
    """What blank labels count as, in a sentence; empty where there are none."""
    if not any(entry.read["blank"].images for entry in census.classes.values()):
        return "No label is blank."
    return f"Blank labels count as {census.blank}."


def states_in_use(census: Census) -> list[str]:
    """Kinds of labels as read that some class has, besides positive and negative."""
    read = [{s: tally.images for s, tally in e.read.items()} for e in census.classes.values()]
    return _in_use(STATES, read)


def outcomes_in_use(census: Census) -> list[str]:
    """Kinds of labels after the policy that some class has, besides positive and negative."""
    return _in_use(OUTCOMES, [entry.labels for entry in census.classes.values()])


def _in_use(kinds: Iterable[str], counts: Sequence[Mapping[str, int]]) -> list[str]:
    used = {"positive", "negative"} | {kind for each in counts for kind in kinds if each[kind]}
    return [kind for kind in kinds if kind in used]


def is_few(split: str, positives: int) -> bool:
    """Whether so few positive images in a split deserve a mark."""
    return positives == 0 or (split == "test" and positives < FEW_IMAGES)


def local_ages(census: Census) -> dict[str, tuple[Cells, int]]:
    """Images of a site by age, and all of them."""
    return {census.site: ({a: t.images for a, t in census.age.items()}, census.total.images)}


def shared_ages(sites: Sequence[SharedCensus]) -> dict[str, tuple[Cells, int]]:
    """The same of each site, as far as shared."""
    return {site.site: (site.age, site.images) for site in sites}
