"""What to know before training on the data of sites, in words."""

from collections.abc import Iterator, Sequence

from cxr_study.common.wording import FEW_IMAGES, Notice, counted, listed, shortened
from cxr_study.data.census.census import Census
from cxr_study.data.census.shareable_census import SharedCensus, prevalence
from cxr_study.data.sites.patient_split import SPLITS
from cxr_study.reports.audit.view import union
from cxr_study.reports.page.numbers import share


def of_site(census: Census) -> Iterator[Notice]:
    """What to know about a site before training on it, most important first."""
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
        statuses = [
            f"{census.dropped[status]:,} {status}"
            for status in dict.fromkeys(bad.status for bad in census.bad_images)
        ]
        yield Notice(
            f"{counted(len(census.bad_images), 'image')} cannot be used.",
            f"{listed(statuses)}. They are left out, and listed below.",
        )
    yield from _of_labels(census)


def _of_labels(census: Census) -> Iterator[Notice]:
    for split in SPLITS:
        missing = [n for n, entry in census.classes.items() if not entry.positives[split]]
        if missing:
            yield Notice(f"No positive image in {split}.", f"{shortened(missing)}.")
    positives = {name: entry.positives["test"] for name, entry in census.classes.items()}
    few = [
        f"{name} ({positives[name]})"
        for name in sorted(positives, key=positives.__getitem__)
        if 0 < positives[name] < FEW_IMAGES
    ]
    if few:
        text = f"{shortened(few)}. Their AUROCs will have wide intervals."
        yield Notice(f"Fewer than {FEW_IMAGES} positive test images.", text)
    unsure = [
        (entry.read["uncertain"].images, entry.read["positive"].images, name, entry.uncertain)
        for name, entry in census.classes.items()
        if entry.read["uncertain"].images > entry.read["positive"].images
    ]
    if unsure:
        rows = [
            f"{name} ({uncertain:,} uncertain, {positive:,} positive; policy {policy})"
            for uncertain, positive, name, policy in sorted(unsure, reverse=True)
        ]
        text = f"{shortened(rows)}. The policy for uncertain labels moves these classes most."
        yield Notice("More uncertain than positive labels.", text)
    half = census.total.images / 2
    unlabelled = [n for n, e in census.classes.items() if e.labels["not labelled"] > half]
    if unlabelled:
        yield Notice("Most images are not labelled for", f"{shortened(unlabelled)}.")


def across(sites: Sequence[SharedCensus]) -> Iterator[Notice]:
    """What to know about the sites together."""
    mixed, apart = [], []
    for name in union(sites):
        labelled = [site for site in sites if name in site.classes]
        matter = [
            site.classes[name] for site in labelled if site.classes[name].read["uncertain"] != 0
        ]
        policies = {entry.uncertain for entry in matter}
        if len(policies) > 1:
            mixed.append(f"{name} ({', '.join(sorted(policies))})")
        known = [value for site in labelled if (value := prevalence(site, name))]
        if known and max(known) >= 3 * min(known):
            apart.append(f"{name} ({share(min(known))} to {share(max(known))})")
    if mixed:
        text = f"{shortened(mixed)}. The same label then means different things at different sites."
        yield Notice("Sites differ in what uncertain labels count as.", text)
    if apart:
        text = f"{shortened(apart)}. Other patients, or other rules of labelling?"
        yield Notice("Threefold differences in how common a class is.", text)
