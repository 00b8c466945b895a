"""What must be said of how a run came about, beyond what its figures show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cxr_study.common.offered_data import DRAWINGS
from cxr_study.common.wording import listed, shortened
from cxr_study.evaluation.summary_json import SHARED_PATIENTS, RunWarning
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest, load
from surgical_aggregation.checkpoints.model_facts import facts_of
from surgical_aggregation.checkpoints.offered_body import offered_body
from surgical_aggregation.wire import variables as wire


def started_from_drawings(best: Checkpoint) -> bool:
    """Whether a model's training began with the body that was pre-trained on drawings."""
    drawings = offered_body(DRAWINGS)
    if drawings is None:
        return False
    body = wire.split(load(drawings).variables)[0]
    return best.manifest.get("initial_body_sha256") == digest(body)


def warnings(
    best: Checkpoint,
    *,
    on_phantom: bool,
    without_mixed_precision: bool,
    unvalidated: Mapping[str, Sequence[str]],
    unfinished: Sequence[str],
    look_alikes: Sequence[str],
    other_splits: Sequence[str] = (),
    shared_patients: Sequence[str] = (),
    breaks: Sequence[str] = (),
) -> Iterator[RunWarning]:
    """Find what must be said of a run.

    Args:
        best: Its best model.
        on_phantom: Whether its images are the phantom's.
        without_mixed_precision: Whether it was asked for, and this machine has none.
        unvalidated: Site -> its classes that no image of its validation split has.
        look_alikes: Classes that may be one; see `job_results.look_alikes`.
        other_splits: Sites; see `FinishedRun.other_splits`.
        shared_patients: What is told of patients at two sites; see `check_disjoint`.
        breaks: How jobs of it failed; see `FinishedRun.breaks`.
        unfinished: Runs for comparison that are left out; see `FinishedRun.unfinished`.
    """
    if not on_phantom and started_from_drawings(best):
        yield RunWarning(
            "Started from drawings.",
            "The body was pre-trained on drawn pictures, not on photographs or radiographs. For "
            "results that count: surgagg model init initial.npz --weights imagenet, and "
            "--initial-body initial.npz.",
        )
    for broke in breaks:
        yield RunWarning("Interrupted, and gone on.", f"{broke[:1].upper()}{broke[1:]}")
    if other_splits:
        yield RunWarning(
            "Tested on patients that it was trained on.",
            f"{listed(list(other_splits))}: the split is not the one of the training, so the model "
            "has seen some of these test patients, and looks better than it is.",
        )
    if shared_patients:
        yield RunWarning(SHARED_PATIENTS, f"{'; '.join(shared_patients)}.")
    if never := facts_of(best).never_learned:
        found = [f"{name} ({why})" for name, why in never.items()]
        yield RunWarning(
            "Never learned.",
            f"{listed(found)}. The model says the same of every image there: do not read these "
            "classes. They do not count for the choice of the best round.",
        )
    if look_alikes:
        yield RunWarning(
            "Classes that may be one finding.",
            f"{'; '.join(look_alikes)}. Ask the sites: as one finding it needs one name "
            "(`merges` in a site file); each of these has a column of its own.",
        )
    if without_mixed_precision:
        yield RunWarning(
            "No mixed precision here.",
            "The setting mixed_precision had no effect without a GPU, or a CPU with bfloat16: the "
            "sites computed in float32.",
        )
    missing = {site: names for site, names in unvalidated.items() if names}
    if missing:
        found = [f"{site}: {shortened(names)}" for site, names in missing.items()]
        yield RunWarning(
            "Classes without a positive validation image.",
            f"{listed(found)}. The choice of the best round does not see them; surgagg data split "
            "makes a split in which they are, where there are patients enough.",
        )
    if unfinished:
        yield RunWarning(
            "Comparisons are left out.",
            f"These runs failed or have not ended: {listed(list(unfinished))}.",
        )
