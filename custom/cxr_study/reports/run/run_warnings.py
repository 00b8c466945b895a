"""What must be said of how a run came about, beyond what its figures show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cxr_phantom.demo_data import PRETRAINED_BODY
from cxr_study.common.wording import Notice, listed, shortened
from cxr_study.data.sites.site_data import check_disjoint
from cxr_study.evaluation.scores import SiteEvaluation
from cxr_study.evaluation.summary_json import SHARED_PATIENTS
from cxr_study.runs.finished_run import FinishedRun
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest, load
from surgical_aggregation.checkpoints.model_facts import facts_of
from surgical_aggregation.wire import variables as wire


def started_from_drawings(best: Checkpoint) -> bool:
    """Whether a model's training began with the body that was pre-trained on drawings."""
    body = wire.split(load(PRETRAINED_BODY).variables)[0]
    return best.manifest.get("initial_body_sha256") == digest(body)


def warnings(
    run: FinishedRun,
    best: Checkpoint,
    evaluations: Sequence[SiteEvaluation],
    *,
    on_phantom: bool,
    without_mixed_precision: bool = False,
    look_alikes: Sequence[str] = (),
) -> Iterator[Notice]:
    """Find what must be said of a run.

    Args:
        run: Which one.
        best: Its best model.
        evaluations: On its sites' test splits.
        on_phantom: Whether its images are the phantom's.
        without_mixed_precision: Whether it was asked for, and this machine has none.
        look_alikes: Classes that may be one; see `job_results.look_alikes`.

    Raises:
        SplitError: Two sites share a patient.
    """
    if not on_phantom and started_from_drawings(best):
        yield Notice(
            "Started from drawings.",
            "The body was pre-trained on drawn pictures, not on photographs or radiographs. For "
            "results that count: surgagg model init initial.npz --weights imagenet, and "
            "--initial-body initial.npz.",
        )
    for broke in run.breaks:
        yield Notice("Interrupted, and gone on.", f"{broke[:1].upper()}{broke[1:]}")
    if run.other_splits:
        yield Notice(
            "Tested on patients that it was trained on.",
            f"{listed(run.other_splits)}: the split is not the one of the training, so the model "
            "has seen some of these test patients, and looks better than it is.",
        )
    if shared := check_disjoint([each.labels for each in evaluations if each.labels]):
        yield Notice(SHARED_PATIENTS, f"{'; '.join(shared)}.")
    if never := facts_of(best).never_learned:
        found = [f"{name} ({why})" for name, why in never.items()]
        yield Notice(
            "Never learned.",
            f"{listed(found)}. The model says the same of every image there: do not read these "
            "classes. They do not count for the choice of the best round.",
        )
    if look_alikes:
        yield Notice(
            "Classes that may be one finding.",
            f"{'; '.join(look_alikes)}. Ask the sites: as one finding it needs one name "
            "(`merges` in a site file); each of these has a column of its own.",
        )
    if without_mixed_precision:
        yield Notice(
            "No mixed precision here.",
            "The setting mixed_precision had no effect without a GPU, or a CPU with bfloat16: the "
            "sites computed in float32.",
        )
    missing = [each for each in evaluations if each.unvalidated]
    if missing:
        found = [f"{each.site}: {shortened(each.unvalidated)}" for each in missing]
        yield Notice(
            "Classes without a positive validation image.",
            f"{listed(found)}. The choice of the best round does not see them; surgagg data split "
            "makes a split in which they are, where there are patients enough.",
        )
    if run.unfinished:
        yield Notice(
            "Comparisons are left out.",
            f"These runs failed or have not ended: {listed(run.unfinished)}.",
        )
