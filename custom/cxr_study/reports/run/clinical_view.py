"""The head of a run report, for clinicians, in sentences and rows of text.

Nothing is computed here: counts, calibration errors and subgroups are those of `summary.json`,
thresholds and what they reach those of the calibration file that `surgagg model calibrate` wrote.
What neither holds is called not assessed, not measured or not known.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cxr_study.common.wording import counted, join_names, shortened
from cxr_study.data.labels.label_table import FRONTAL
from cxr_study.evaluation import subgroup_scores
from cxr_study.evaluation.summary_json import ClassAuroc, Summary
from cxr_study.models.model_calibration import CalibrationFile
from cxr_study.reports.page import numbers
from cxr_study.reports.run import run_view

GLOBAL = ""
"""Key of the global model in `ModelFiles`; a personal model's key is its site."""

NOT_ASSESSED = "not assessed"
"""In place of a sensitivity, specificity or PPV, where no threshold was calibrated."""

NOT_MEASURED = "not measured"
"""In place of a number that was not measured, such as an output at a site that sends none."""

COLUMNS = (
    "Finding", "Test images with it", "Mean output", "Calibration error", "Threshold",
    "Sensitivity", "Specificity", "PPV",
)  # fmt: skip
"""Of the table of each site; see `rows`."""


@dataclass(frozen=True)
class ModelFiles:
    """What lies next to the reported models, by `GLOBAL` or the site of a personal model.

    Attributes:
        calibrations: The calibration of each model; None: it has none that fits it.
        cards: Addresses of the model cards, relative to the report.
        chest: Whether the images are known to be chest X-rays. Default False.
    """

    calibrations: Mapping[str, CalibrationFile | None] = field(default_factory=dict)
    cards: Mapping[str, str] = field(default_factory=dict)
    chest: bool = False

    def calibration(self, site: str) -> CalibrationFile | None:
        """The calibration of the model that a site uses: its personal one, else the global.

        Returns:
            None also where it was made without images of the site, and so not tested on them.
        """
        made = self.calibrations.get(site, self.calibrations.get(GLOBAL))
        return made if made and site in made.sites else None


NO_FILES = ModelFiles()
"""Of a report of which only the summary is at hand."""


def statements(summary: Summary, files: ModelFiles) -> dict[str, str]:
    """Describe in plain words what the model gives, what it does not give, and its training data.

    Args:
        summary: Of the run; numbers that sites do not share are named as not known.
        files: States whether the images are chest X-rays; frontal, if all known test images are.

    Returns:
        Heading -> a few sentences, in the order of the page.
    """
    views = {row.subgroup for row in summary.subgroups if row.kind == "view"}
    frontal = "frontal " if views and views <= {*FRONTAL} else ""
    image = f"a {frontal}chest X-ray" if files.chest else "an image"
    kinds = counted(len(summary.union), "finding")
    if summary.personal:
        scope = "Each hospital has a model of its own, for the findings of its table below."
    else:
        scope = f"The model knows {kinds}: {join_names(summary.union)}."
    given = [f"{name} ({_trained_with(summary, name)})" for name in summary.sites]
    trained = {
        "phantom": "Drawn pictures, not images of patients.",
        "real": "Images of hospitals.",
        "elsewhere": "Images that stay at the hospitals; what is not given here, they keep.",
    }[summary.data]
    return {
        "What it says.": f"{scope} For {image} it gives each a number from 0 to 1: the higher, the "
        "more the image resembles those that were labelled with the finding.",
        "What it does not say.": "Nothing about any other finding, and not where a finding is, how "
        "severe it is or what caused it. Without calibration its numbers rank images and are no "
        "probabilities of disease.",
        "What it was trained on.": f"{trained} Training data by hospital: {shortened(given)}. The "
        "labels are each hospital's own, and definitions may differ between hospitals. Age, sex "
        "and view are given below for test images, as far as known; whether children are among "
        "them is not recorded.",
    }


def _trained_with(summary: Summary, site: str) -> str:
    """How many findings, images and patients a site trained with, as far as it shares them.

    Returns:
        Of a site that contributed to no round, that alone.
    """
    data = summary.sites[site]
    if site in run_view.absent(summary):
        return "contributed to no round"
    labels = f"labels {counted(len(data.classes), 'finding')}"
    if data.images is None or data.patients is None:
        return f"{labels}, number of images not known here"
    patients = counted(data.patients.train, "patient")
    return f"{labels}, {counted(data.images.train, 'image')} of {patients}"


def rows(summary: Summary, files: ModelFiles, site: str) -> list[tuple[str, ...]]:
    """The table of one site: a row for each class whose presence is known there.

    Classes that the site labels come first, then those known from complete labels for evaluation.

    Args:
        summary: Of the run.
        files: Its calibrations.
        site: Whose test split.

    Returns:
        Cells of the `COLUMNS`: the class; positive of all labelled test images; mean output and
        expected calibration error of the model's own probabilities; threshold of the calibrated
        probability; and sensitivity, specificity and positive predictive value at it, with their
        95 % intervals, or `NOT_ASSESSED`.
    """
    measured = {row.class_name: row for row in summary.calibration if row.site == site}
    made = []
    for row in sorted(_of_site(summary, site), key=lambda row: not row.labelled):
        if not _is_known(row):
            continue
        of = measured.get(row.class_name)
        made.append(
            (
                row.class_name if row.labelled else f"{row.class_name} (not labelled here)",
                _positives(row),
                numbers.figure(of.output) if of else NOT_MEASURED,
                numbers.figure(of.error) if of else NOT_MEASURED,
                *_at_threshold(files.calibration(site), row),
            )
        )
    return made


def unknown_classes(summary: Summary, site: str) -> list[str]:
    """Classes of the model for which a site's test split has no label, so no row."""
    return [row.class_name for row in _of_site(summary, site) if not _is_known(row)]


def _of_site(summary: Summary, site: str) -> list[ClassAuroc]:
    return [row for row in summary.test if (row.site, row.model) == (site, "global")]


def _is_known(row: ClassAuroc) -> bool:
    """Whether any test image has a label of the class.

    A site that measures by itself may withhold how many have one; it is known then.
    """
    return row.positives is None or row.negatives is None or row.positives + row.negatives > 0


def _positives(row: ClassAuroc) -> str:
    """Write the prevalence in the test split, such as `5 of 100 (5.0 %)`.

    Returns:
        Positive of all labelled test images, or that the site withholds the counts.
    """
    if row.positives is None or row.negatives is None:
        return numbers.WITHHELD
    images = row.positives + row.negatives
    return f"{row.positives:,} of {images:,} ({100 * row.positives / images:.1f} %)"


def _at_threshold(calibration: CalibrationFile | None, row: ClassAuroc) -> list[str]:
    """Write threshold, sensitivity, specificity and PPV of a class.

    Args:
        calibration: Made with images of the site; see `ModelFiles.calibration`. Its numbers are of
            the test images of all sites that it was made with.
        row: The class at the site.

    Returns:
        Four cells: `NOT_ASSESSED` where the class has no threshold or the site does not label it,
        `NOT_MEASURED` where there was a threshold and no test image to measure it on.
    """
    of = calibration.classes.get(row.class_name) if calibration and row.labelled else None
    if of is None:
        return [NOT_ASSESSED] * 4
    shares = (of.test_sensitivity, of.test_specificity, of.test_ppv)
    reached = [NOT_MEASURED if s[0] is None else numbers.interval(*s, 2) for s in shares]
    short = [text.replace(" to ", "\N{EN DASH}") for text in reached]
    return [numbers.figure(of.threshold, 2), *short]


def thresholds(files: ModelFiles, site: str) -> str:
    """Explain how the thresholds of a site's table were chosen and tested.

    Returns:
        A sentence or two; where no threshold was calibrated with images of the site, that nothing
        is assessed.
    """
    calibration = files.calibration(site)
    if calibration is None:
        unknown = "sensitivity, specificity and PPV are not assessed"
        return f"No threshold was calibrated at {site}: {unknown}."
    return (
        f"Thresholds were chosen by {calibration.threshold_rule} on validation images of "
        f"{join_names(calibration.sites)}, and tested on test images of the same; in brackets 95 % "
        "intervals. The positive predictive value (PPV) is lower where a finding is rarer."
    )


def subgroups(summary: Summary, site: str) -> list[str]:
    """List the subgroups of a site's test images by sex, age and view, and compare them.

    Returns:
        A sentence for each kind that is known of the images: subgroups with their numbers of
        images, and mean AUROCs over the classes that have enough images in every subgroup of the
        kind, with a warning of the lowest. They have no intervals. Where nothing was measured, one
        sentence states that.
    """
    lines = []
    for kind in subgroup_scores.KINDS:
        found = [row for row in summary.subgroups if (row.site, row.kind) == (site, kind)]
        aurocs = {row.subgroup: row.compared_auroc or 0.0 for row in found if row.compared}
        parts = [
            f"{row.subgroup} {counted(row.images, 'image')}"
            + f", AUROC {numbers.figure(row.compared_auroc)}" * bool(row.compared)
            for row in found
        ]
        line = f"By {kind}: {'; '.join(parts)}."
        if len(aurocs) > 1:
            lowest = min(aurocs, key=aurocs.__getitem__)
            gap, classes = max(aurocs.values()) - aurocs[lowest], found[0].compared
            line += (
                f" Lowest for {lowest}, by {gap:.3f}, over {counted(classes, 'class', 'classes')}"
            )
            line += "; without an interval, so it may be chance."
        elif len(found) > 1:
            line += " Not compared: no class has enough images in every subgroup."
        lines += [line] * bool(found)
    return lines or ["Performance by sex, age and view was not measured."]


def commands(summary: Summary, files: ModelFiles) -> list[str]:
    """Commands that calibrate thresholds and write the report again.

    Returns:
        In their order; none where every site has thresholds. What only the reader knows, such as
        the run's folder, is in angle brackets.
    """
    lacking = [site for site in summary.sites if files.calibration(site) is None]
    if not lacking:
        return []
    data = "--phantom" if summary.data == "phantom" else "--site-files <folder of site files>"
    if not files.chest:
        data = "--own-site <module:Class>"
    whose = f"--site {lacking[0]}" if summary.personal else f"--sites {','.join(summary.sites)}"
    replaced = " --force" * bool(files.calibrations.get(GLOBAL))
    calibrate = f"surgagg model calibrate <folder of the run> {data} {whose} --sensitivity 0.9"
    return [f"{calibrate}{replaced}", "surgagg report <folder of the run>"]
