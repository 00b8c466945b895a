"""Texts and numbers of an audit's page, without HTML."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from cxr_audit.census.across_sites import EqualImages
from cxr_audit.census.census import OUTCOMES, STATES, Census
from cxr_audit.census.shareable_census import Cells, SharedCensus, prevalence
from cxr_study.common.wording import FEW_IMAGES, Notice, counted, join_names, shortened
from cxr_study.data.sites.patient_split import SPLITS
from cxr_study.reports.page.numbers import UNDEFINED


def ratio(part: int, whole: int) -> str:
    """Write a part of a whole as a percentage, or a dash where the whole is 0."""
    return share(part / whole) if whole else UNDEFINED


def share(value: float) -> str:
    """Write a share as a percentage: `12.3 %`."""
    return f"{100 * value:.1f} %"


def positive_share(census: Census, class_name: str) -> float | None:
    """Share of the labelled images of a class that are positive.

    Args:
        census: Of the site.
        class_name: One of its classes.

    Returns:
        None where no image is labelled.
    """
    labels = census.classes[class_name].labels
    labelled = census.total.images - labels["not labelled"]
    return labels["positive"] / labelled if labelled else None


def headline(census: Census) -> str:
    """A site in one sentence: images, patients, classes, and range of prevalences."""
    of = f" of {counted(census.total.patients, 'patient')}"
    patients = of if census.patients_known else ", patients unknown"
    classes = counted(len(census.classes), "class", "classes")
    text = f"{census.site}: {counted(census.total.images, 'image')}{patients}, {classes}"
    shares = {name: positive_share(census, name) for name in census.classes}
    known = {name: value for name, value in shares.items() if value is not None}
    if not known:
        return f"{text}; no image is labelled."
    ends = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
    rarest, commonest = (f"{share(known[name])} ({name})" for name in ends)
    return f"{text}; positive from {rarest} to {commonest}."


def across_headline(sites: Sequence[SharedCensus]) -> str:
    """All sites in one sentence: sites, images, and classes by number of sites that label them."""
    numbers = [sum(name in site.classes for site in sites) for name in union(sites)]
    images = counted(sum(site.images for site in sites), "image")
    return (
        f"{counted(len(sites), 'site')} with {images} label "
        f"{counted(len(numbers), 'class', 'classes')}: {numbers.count(len(sites)) or 'none'} at "
        f"every site, {numbers.count(1) or 'none'} at one alone."
    )


def union(sites: Sequence[SharedCensus]) -> list[str]:
    """Classes of all sites, those that most sites label first."""
    labels = {name: [name in site.classes for site in sites] for s in sites for name in s.classes}
    return sorted(labels, key=lambda name: (-sum(labels[name]), labels[name][::-1], name))


def policy(census: Census) -> str:
    """A sentence on what blank labels count as."""
    blank = any(entry.read["blank"].images for entry in census.classes.values())
    return f"Blank labels count as {census.blank}." if blank else "No label is blank."


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
    """Whether a split has so few positive images of a class that the number is highlighted."""
    return positives == 0 or (split == "test" and positives < FEW_IMAGES)


def local_ages(census: Census) -> dict[str, tuple[Cells, int]]:
    """Site -> images by age, and all images; for `audit_figures.ages`."""
    return {census.site: ({a: t.images for a, t in census.age.items()}, census.total.images)}


def shared_ages(sites: Sequence[SharedCensus]) -> dict[str, tuple[Cells, int]]:
    """Site -> images by age, as shared, and all images; for `audit_figures.ages`."""
    return {site.site: (site.age, site.images) for site in sites}


def site_notices(census: Census) -> Iterator[Notice]:
    """What to know about a site before training on it, most important first.

    Args:
        census: Of the site.

    Yields:
        Notices about patients, duplicates, unusable images and labels, each only where it applies.
    """
    if not census.patients_known:
        yield Notice(
            "Patients unknown.",
            f"{census.dataset} has no patient numbers, so images of one patient may be in "
            "different splits, and test results may look better than they are.",
        )
    if census.duplicates_across:
        yield Notice(
            "Duplicates across splits.",
            f"{counted(census.duplicates_across, 'image')} repeat a picture of another split. "
            "They are left out; is one patient under two numbers?",
        )
    if census.bad_images:
        found = dict.fromkeys(bad["status"] for bad in census.bad_images)
        statuses = [f"{census.dropped[status]:,} {status}" for status in found]
        yield Notice(
            f"{counted(len(census.bad_images), 'image')} cannot be used.",
            f"{join_names(statuses)}. They are left out, and listed below.",
        )
    if census.noted:
        noted = [f"{note} ({counted(number, 'image')})" for note, number in census.noted.items()]
        yield Notice(
            "Images that may not be chest radiographs of the labelled view.",
            f"{shortened(noted)}. They are used; 'contradictions: refuse' in the site file leaves "
            "them out.",
        )
    yield from _label_notices(census)


def _label_notices(census: Census) -> Iterator[Notice]:
    """Notices about labels: missing or few positives, uncertain labels, missing labels."""
    for split in SPLITS:
        missing = [n for n, entry in census.classes.items() if not entry.positives[split]]
        if missing:
            yield Notice(f"No positive image in {split}.", f"{shortened(missing)}.")
    tested = sorted((entry.positives["test"], name) for name, entry in census.classes.items())
    few = [f"{name} ({positives})" for positives, name in tested if 0 < positives < FEW_IMAGES]
    if few:
        text = f"{shortened(few)}. Their AUROCs will have wide intervals."
        yield Notice(f"Fewer than {FEW_IMAGES} positive test images.", text)
    unsure = [
        (entry.read["uncertain"].images, entry.read["positive"].images, name, entry.uncertain)
        for name, entry in census.classes.items()
    ]
    rows = [
        f"{name} ({uncertain:,} uncertain, {positive:,} positive; policy {policy})"
        for uncertain, positive, name, policy in sorted(unsure, reverse=True)
        if uncertain > positive
    ]
    if rows:
        text = f"{shortened(rows)}. The policy for uncertain labels moves these classes most."
        yield Notice("More uncertain than positive labels.", text)
    half = census.total.images / 2
    unlabelled = [n for n, e in census.classes.items() if e.labels["not labelled"] > half]
    if unlabelled:
        yield Notice("Most images are not labelled for", f"{shortened(unlabelled)}.")


def equal_notices(pairs: Sequence[EqualImages]) -> Iterator[Notice]:
    """Images that two sites have, a notice for each pair of sites.

    Args:
        pairs: See `across_sites.equal_images`.
    """
    for one, other in dict.fromkeys((pair.site, pair.other_site) for pair in pairs):
        found = [pair for pair in pairs if (pair.site, pair.other_site) == (one, other)]
        exact = sum(pair.exact for pair in found)
        named = shortened([f"{pair.image} = {pair.other_image}" for pair in found if pair.image], 3)
        yield Notice(
            f"{counted(len(found), 'image')} of {one} {'is' if len(found) == 1 else 'are'} at "
            f"{other} too.",
            f"{exact:,} pixel for pixel, {len(found) - exact:,} nearly, by perceptual hashes. Is a "
            "patient at both, under other numbers? A test image of one may train the other: leave "
            f"them out at one of the two{f' ({named})' if named else ''}.",
        )


def across_notices(sites: Sequence[SharedCensus]) -> Iterator[Notice]:
    """What to know about the sites together: different policies, and different prevalences.

    Args:
        sites: What each of them shares.
    """
    mixed, apart = [], []
    for name in union(sites):
        labelled = [site for site in sites if name in site.classes]
        entries = [site.classes[name] for site in labelled]
        policies = {entry.uncertain for entry in entries if entry.read["uncertain"] != 0}
        if len(policies) > 1:
            mixed.append(f"{name} ({', '.join(sorted(policies))})")
        known = [value for site in labelled if (value := prevalence(site, name)) is not None]
        if any(known) and max(known) >= 3 * min(known):
            apart.append(f"{name} ({share(min(known))} to {share(max(known))})")
    if mixed:
        text = f"{shortened(mixed)}. The same label then means different things at different sites."
        yield Notice("Sites differ in what uncertain labels count as.", text)
    if apart:
        text = f"{shortened(apart)}. Other patients, or other rules of labelling?"
        yield Notice("Threefold differences in how common a class is.", text)
