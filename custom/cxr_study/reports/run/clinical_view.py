"""The head of a run report, for clinicians, in sentences and rows of text.

Nothing is computed here: counts, AUROCs, raw outputs and subgroups are those of `summary.json`,
thresholds and what they reach those of the calibration file that `surgagg model calibrate` wrote.
What neither holds is called not assessed, not measured or not known.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cxr_study.common.wording import counted, join_names, shortened
from cxr_study.data.labels.label_table import FRONTAL
from cxr_study.evaluation import subgroup_scores
from cxr_study.evaluation.summary_json import ClassAuroc, Summary
from cxr_study.models.calibration_file import CalibrationFile
from cxr_study.reports.page import numbers
from cxr_study.reports.run import run_view

GLOBAL = ""
"""Key of the global model in `ModelFiles`; a personal model's key is its site."""

NOT_ASSESSED = "not assessed"
"""In place of a sensitivity, specificity or PPV, where no threshold was calibrated."""

NOT_MEASURED = "not measured"
"""In place of a number that was not measured, such as an output at a site that sends none."""

COLUMNS = (
    "Finding", "Test images with it", "AUROC (95\N{NO-BREAK SPACE}%)", "Hospital alone",
    "Calibration error, raw output", "Threshold", "Sensitivity", "Specificity", "PPV",
    "Calibration error, calibrated",
)  # fmt: skip
"""Of the table of each site; see `rows`."""

FAR = 0.2
"""A mean raw output that is more than this from the share of images with the finding is named."""


@dataclass(frozen=True)
class ModelFiles:
    """What lies next to the reported models, by `GLOBAL` or the site of a personal model.

    Attributes:
        calibrations: The calibration of each model; None: it has none that fits it.
        cards: The model cards: address relative to the report, and text.
        chest: Whether the images are known to be chest X-rays. Default False.
    """

    calibrations: Mapping[str, CalibrationFile | None] = field(default_factory=dict)
    cards: Mapping[str, tuple[str, str]] = field(default_factory=dict)
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
    if size := summary.image_size:
        image += f", resized to {size} \N{MULTIPLICATION SIGN} {size} pixels,"
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
        f"severe it is or what caused it. {_calibrated(files)} rank images and are not "
        "probabilities of disease.",
        "What it was trained on.": f"{trained} Training data by hospital: {shortened(given)}. The "
        "labels are each hospital's own, and definitions may differ between hospitals. Age, sex "
        "and view are given below for test images, as far as known; whether children are among "
        "them is not recorded.",
    }


def _calibrated(files: ModelFiles) -> str:
    """State how many findings are calibrated and where, and begin the sentence on the others."""
    parts = [
        f"{len(of.classes)} of {counted(len(of.classes) + len(of.refused), 'finding')} with images "
        f"of {join_names(of.sites)}"
        for of in files.calibrations.values()
        if of is not None
    ]
    if not parts:
        return "No finding is calibrated: outputs"
    return f"Calibrated: {join_names(parts)}. Other outputs, and all at other hospitals,"


def _trained_with(summary: Summary, site: str) -> str:
    """How many findings, images and patients a site trained with, as far as it shares them.

    Returns:
        Of a site that contributed nothing to the reported model, that alone.
    """
    data = summary.sites[site]
    if nothing := run_view.without_part(summary, site):
        return nothing
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
        Cells of the `COLUMNS`: the class; positive of all labelled test images; AUROCs of the model
        and of the one that the hospital trains alone; expected calibration error of the model's own
        probabilities; threshold of the calibrated probability; sensitivity, specificity and
        positive predictive value at it; and calibration error after calibration. All measures are
        of the site's test images, with 95 % intervals. One `NOT_ASSESSED` replaces the last five.
    """
    measured = {row.class_name: row for row in summary.calibration if row.site == site}
    alone = {r.class_name: r for r in summary.test if (r.site, r.model) == (site, "local")}
    made = []
    for row in sorted(_of_site(summary, site), key=lambda row: not row.labelled):
        if not _is_known(row):
            continue
        of = measured.get(row.class_name)
        made.append(
            (
                row.class_name if row.labelled else f"{row.class_name} (not labelled here)",
                _positives(row),
                numbers.auroc(row),
                _alone(alone, row),
                numbers.figure(of.error) if of else NOT_MEASURED,
                *_at_threshold(files.calibration(site), row),
            )
        )
    return made


def _alone(alone: Mapping[str, ClassAuroc], row: ClassAuroc) -> str:
    """AUROC of the hospital's own model; `UNDEFINED`: it does not have the class."""
    if not alone:
        return NOT_MEASURED
    return numbers.auroc(alone.get(row.class_name)) if row.labelled else numbers.UNDEFINED


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
    """Write threshold, sensitivity, specificity and PPV of a class, and its error calibrated.

    Args:
        calibration: Made with images of the site; see `ModelFiles.calibration`.
        row: The class at the site.

    Returns:
        Five cells, `NOT_MEASURED` where the calibration has no number of the site's test images;
        or `NOT_ASSESSED` alone: the class has no threshold, or the site does not label it.
    """
    if calibration is None or not _has_threshold(calibration, row):
        return [NOT_ASSESSED]
    of = calibration.site_test(row.class_name, row.site)
    shares = (of.sensitivity, of.specificity, of.ppv)
    reached = [NOT_MEASURED if s[0] is None else numbers.interval(*s, 2) for s in shares]
    return [
        numbers.figure(calibration.classes[row.class_name].threshold, 2),
        *(text.replace(" to ", "\N{EN DASH}") for text in reached),
        NOT_MEASURED if of.ece is None else numbers.figure(of.ece),
    ]


def _has_threshold(calibration: CalibrationFile, row: ClassAuroc) -> bool:
    return row.labelled and row.class_name in calibration.classes


def below_table(summary: Summary, files: ModelFiles, site: str) -> list[str]:
    """Explain a site's table.

    Returns:
        Sentences: how thresholds were chosen and tested, which miss their sensitivity, what is not
        assessed and why, and classes whose mean raw output is far from their prevalence.
    """
    calibration, of_site = files.calibration(site), _of_site(summary, site)
    if calibration is None:
        unknown = "sensitivity, specificity and PPV are not assessed"
        lines = [f"No threshold was calibrated at {site}: {unknown}."]
    else:
        lines = [_chosen(calibration, site), *_missed(calibration, of_site)]
        lines += _not_assessed(calibration, [row for row in of_site if _is_known(row)])
    if unlabelled := [row.class_name for row in of_site if not _is_known(row)]:
        names = join_names(unlabelled)
        lines.append(f"Not assessed at {site}, whose test images have no label of them: {names}.")
    far = [
        f"{row.class_name} ({row.output:.2f}, share {row.prevalence:.2f})"
        for row in summary.calibration
        if row.site == site and row.output is not None and row.prevalence is not None
        if abs(row.output - row.prevalence) > FAR
    ]
    if far:
        lines.append(
            f"Mean raw output more than {FAR} away from the share of test images with the finding: "
            f"{join_names(far)}."
        )
    return lines


def _chosen(calibration: CalibrationFile, site: str) -> str:
    target, several = calibration.target, len(calibration.sites) > 1
    aim = "for the highest F1" if target is None else f"to reach sensitivity {target:g}"
    return (
        f"Thresholds were chosen {aim} on the validation images of {join_names(calibration.sites)}"
        f"{' together' * several}. Sensitivity, specificity and positive predictive value (PPV) "
        f"are of the test images of {site}, with 95 % intervals: bootstrap by patient or, where "
        "that has no width (at 0.00 and 1.00), Clopper-Pearson on the number of patients. PPV is "
        "lower where a finding is rarer."
    )


def _missed(calibration: CalibrationFile, of_site: Sequence[ClassAuroc]) -> list[str]:
    """Name each threshold whose whole interval of test sensitivity is below the target."""
    target = calibration.target or 0
    reached = {
        row.class_name: calibration.site_test(row.class_name, row.site).sensitivity
        for row in of_site
        if _has_threshold(calibration, row)
    }
    return [
        f"The threshold of {name} was chosen for sensitivity {target:g} and reaches "
        f"{numbers.interval(*share, 2)} on test images."
        for name, share in reached.items()
        if share[2] is not None and share[2] < target
    ]


def _not_assessed(calibration: CalibrationFile, known: Sequence[ClassAuroc]) -> list[str]:
    """Give the reason for every `NOT_ASSESSED` of a site's table, one sentence for each reason."""
    lacking: dict[str, list[str]] = {}
    for row in known:
        if not _has_threshold(calibration, row):
            why = calibration.refused.get(row.class_name, "the model has no such class")
            reason = f"on validation images: {why.partition(';')[0]}"
            if not row.labelled:
                reason = f"not labelled at {row.site}"
            lacking.setdefault(reason, []).append(row.class_name)
    return [f"Not assessed: {join_names(names)} ({why})." for why, names in lacking.items()]


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
