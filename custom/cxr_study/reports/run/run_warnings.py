"""Warnings about how a run was made, which its reader needs before its results."""

from collections.abc import Iterator, Sequence

from cxr_study.common import offered_data
from cxr_study.common.wording import Notice, join_names, shortened
from cxr_study.data.readers import dataset_of
from cxr_study.data.sites.site_data import check_disjoint
from cxr_study.evaluation.scores import SiteEvaluation
from cxr_study.evaluation.summary_json import NO_PATIENTS, SEEN_PATIENTS, SHARED_PATIENTS, Data
from cxr_study.runs import job_results
from cxr_study.runs.finished_run import FinishedRun
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest, load
from surgical_aggregation.checkpoints.model_facts import facts_of
from surgical_aggregation.extras import offered_body
from surgical_aggregation.site.training import tensorflow_setup
from surgical_aggregation.wire import variables as wire


def started_from_drawings(best: Checkpoint) -> bool:
    """Whether a model's training began with the body that was pre-trained on drawings.

    Args:
        best: The model; its manifest holds the digest of its initial body.

    Returns:
        False also where the package that brings that body is not installed.
    """
    drawings = offered_body(offered_data.DRAWINGS)
    if drawings is None:
        return False
    body = wire.split(load(drawings).variables)[0]
    return best.manifest.get("initial_body_sha256") == digest(body)


def warnings_of(
    run: FinishedRun, best: Checkpoint, evaluations: Sequence[SiteEvaluation], data: Data
) -> Iterator[Notice]:
    """Find the warnings about a run.

    Args:
        run: Which run.
        best: Its best model.
        evaluations: On its sites' test splits, with the sites' labels where they are here.
        data: Whose images; "phantom" may start from drawings without a warning.

    Yields:
        One for each kind of fault, most serious first: a start from drawings, an interruption,
        test patients that were trained on, patients at two sites or unknown, classes without a
        teacher, classes that may be one finding, settings without effect, sites without a
        personal model, comparisons that are missing.

    Raises:
        SplitError: Two sites share a patient.
    """
    if data != "phantom" and started_from_drawings(best):
        yield Notice(
            "Started from drawings.",
            "The body was pre-trained on drawn pictures, not on photographs or radiographs. For "
            "results that count: surgagg model init initial.npz --weights imagenet, and "
            "--initial-body initial.npz.",
        )
    for broke in run.facts.breaks:
        yield Notice("Interrupted and resumed.", f"{broke[:1].upper()}{broke[1:]}")
    if run.other_splits:
        yield Notice(
            SEEN_PATIENTS,
            f"{join_names(run.other_splits)}: the split is not the one of the training, so the "
            "model has seen some of these test patients, and these results are too good.",
        )
    if shared := check_disjoint([each.labels for each in evaluations if each.labels]):
        yield Notice(SHARED_PATIENTS, f"{'; '.join(shared)}.")
    labels = [each.labels.site for each in evaluations if each.labels]
    imaged = (s for s in labels if s.patients == "each-image" or not dataset_of(s.dataset).patients)
    if alone := [site.site for site in imaged]:
        yield Notice(
            NO_PATIENTS,
            f"{join_names(alone)}: images of one patient may be in training and in test. If so, "
            "results are too good and intervals too narrow.",
        )
    if never := facts_of(best).never_learned:
        found = [f"{name} ({why})" for name, why in never.items()]
        yield Notice(
            "Never learned.",
            f"{join_names(found)}. The model gives every image the same probability of these "
            "classes: do not read them. They do not count for the choice of the best round.",
        )
    if look_alikes := job_results.look_alikes(*run.servers):
        yield Notice(
            "Classes that may be one finding.",
            f"{'; '.join(look_alikes)}. Ask the sites: as one finding it needs one name "
            "(`merges` in a site file); each of these has a column of its own.",
        )
    here = data != "elsewhere"
    if here and run.job.at_server.mixed_precision and not tensorflow_setup.half_precision():
        yield Notice(
            "No mixed precision here.",
            "The setting mixed_precision had no effect without a GPU, or a CPU with bfloat16: the "
            "sites computed in float32.",
        )
    if bare := [each.site for each in evaluations if each.labels and not each.predictions]:
        text = f"{join_names(bare)}: no best model of its own in this run, so no AUROC is defined."
        yield Notice("No personal model.", text)
    if missing := [f"{e.site}: {shortened(e.unvalidated)}" for e in evaluations if e.unvalidated]:
        yield Notice(
            "Classes without a positive validation image.",
            f"{join_names(missing)}. The choice of the best round sees only their negative images, "
            "if any; surgagg data split makes a split with positive ones, where patients suffice.",
        )
    if run.unfinished:
        text = f"These runs failed or have not ended: {join_names(run.unfinished)}."
        yield Notice("Comparisons are left out.", text)
