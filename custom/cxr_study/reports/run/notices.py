"""What limits the results of a run, in words, for the page and the terminal.

`run_warnings` finds what follows from how a run was made, while it is evaluated; this module adds
what follows from the numbers of its summary.
"""

from collections.abc import Iterator

from cxr_study.common.wording import FEW_IMAGES, Notice, counted, format_rounds, shortened
from cxr_study.evaluation.bootstrap import FEWEST
from cxr_study.evaluation.summary_json import Summary
from cxr_study.reports.page import numbers
from cxr_study.reports.run import run_view
from surgical_aggregation.checkpoints.manifest import spans


def notices(summary: Summary) -> Iterator[Notice]:
    """Find what a reader must know before believing the numbers.

    Args:
        summary: Of the run, with the warnings that were found when it was evaluated.

    Yields:
        Absent sites and missing rounds; the warnings; what the data can show; AUROCs of few
        patients or images, constant or not defined; results and records that are missing; and
        whether training had converged. Only what applies.
    """
    for absence in run_view.absences(summary):
        yield Notice("Missing site.", absence)
    if run_view.is_interrupted(summary):
        yield Notice(
            "Not finished.",
            f"{summary.num_rounds} of {summary.planned_rounds} rounds were made. surgagg continue "
            "runs the others.",
        )
    for warning in summary.warnings:
        yield Notice(warning.heading, warning.text)
    note = summary.note.removeprefix("phantom data: ").rstrip(".")
    sentence = note and f"{note[0].upper()}{note[1:]}."
    if summary.data == "phantom":
        text = f"The pictures are generated, not taken from patients. {sentence}"
        yield Notice("Phantom data.", text.strip())
    elif summary.data == "elsewhere":
        yield Notice("Measured at the sites.", sentence)
    elif note:
        yield Notice("Note.", sentence)
    rows = [row for row in run_view.measurable(summary) if row.model == "global"]
    defined = [row for row in rows if row.auroc is not None]
    if few := [row for row in defined if row.few]:
        names = shortened(
            [f"{row.class_name} at {row.site} ({numbers.count(row.positives)})" for row in few]
        )
        yield Notice(
            "Too few patients.",
            f"{len(few)} of {len(defined)} AUROCs rest on fewer than {FEWEST} positive (or "
            f"negative) patients: {names}, with the positive images in brackets. They have no "
            "interval, which would be too narrow, and are left out of the means.",
        )
    small = [
        row
        for row in defined
        for counts in [(row.positives, row.negatives)]
        if not row.few and any(count is not None and count < FEW_IMAGES for count in counts)
    ]
    if small:
        text = (
            f"{len(small)} of {len(defined)} AUROCs rest on fewer than {FEW_IMAGES} positive (or "
            "negative) images. Their intervals are wide: read them as a range, not as a value."
        )
        row = max(small, key=lambda row: (row.high or 0.0) - (row.low or 0.0))
        if row.low is not None:
            positives = counted(row.positives or 0, "positive")
            images = f"{positives}, {counted(row.negatives or 0, 'negative')}"
            text += f" Widest: {row.class_name} at {row.site}, {numbers.auroc(row)}, {images}."
        yield Notice("Small test set: wide intervals.", text)
    if len(defined) > 1 and all(row.auroc == run_view.CHANCE for row in defined):
        yield Notice(
            "A constant model.",
            "Every AUROC is exactly 0.5: the model gives every image the same probabilities. Its "
            "training has not begun, or has destroyed it: see the losses of the rounds.",
        )
    if summary.best.round == 0 and len(summary.rounds) > 1:
        yield Notice(
            "No round was better than the start.",
            "The best model by validation is the one that the run started from: it did not learn, "
            "or was continued with worse data or a learning rate that is too high.",
        )
    if len(defined) < len(rows):
        yield Notice(
            "Not defined.",
            f"{len(rows) - len(defined)} of {len(rows)} AUROCs of the global model are not defined "
            "and are left out of the means; the report lists the reasons.",
        )
    if summary.refusals:
        left_out = counted(len(summary.refusals), "result")
        text = f"The server continued without {left_out}; the report lists the reasons."
        yield Notice("Results left out.", text)
    if lost := {*range(summary.num_rounds)} - {entry.round for entry in summary.rounds}:
        yield Notice(
            "Part of the record.",
            f"The record of {format_rounds(spans(lost))} is not at hand: it is that of an earlier "
            "run, or of a job that was lost with its server. The curves lack these rounds.",
        )
    losses = [entry.mean_validation_bce for entry in summary.rounds]
    measured = [loss for loss in losses if loss is not None]
    if len(measured) > 1 and losses[-1] == min(measured):
        text = "The validation loss is smallest after the last round: more rounds may help."
        yield Notice("Not yet converged.", text)
