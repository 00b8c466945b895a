"""Training without a federation: measured, selected and stopped like its rounds."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from cxr_studies.baseline import BEST_FILE, ROUNDS_FILE
from cxr_study.common.errors import InputError
from surgical_aggregation.aggregation.average_of_rounds import average, averaged
from surgical_aggregation.aggregation.batch_norm_strategy import check_body
from surgical_aggregation.aggregation.metrics import mean_over, of_classes
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load, save
from surgical_aggregation.checkpoints.manifest import Manifest, made_now, with_round
from surgical_aggregation.site.training.training_options import TrainingOptions
from surgical_aggregation.wire import variables as wire
from surgical_aggregation.wire.headers import AVERAGE, BEST_OF_ROUNDS, CANDIDATE, REFIT

if TYPE_CHECKING:  # TensorFlow must not start before its threads are set; nor FLARE for a name
    import tensorflow as tf

    from surgical_aggregation.site.contract.site import Site
    from surgical_aggregation.site.training.trainer import LocalTraining


def train_alone(
    site: Site,
    options: TrainingOptions,
    initial: Checkpoint,
    *,
    measured_at: Mapping[str, Site],
    rounds: int,
    patience: int = 0,
    average_decay: float = 0.0,
    refit_model: str = "none",
    out: Path,
    facts: Mapping[str, object],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Train a site's model by itself, round by round as in a federation of one.

    The model of round r is the one that round r starts from. The best model has the smallest mean
    over sites of the validation loss, and the final model counts as well. The model of round 0
    counts only if no column had to be warmed up, because a federation has no such model. Training
    stops after `patience` rounds without a better model.

    Writes to `out`, in every round: best.npz and last.npz, checkpoints under wire names, and a
    line of rounds.jsonl: {"round", "mean_validation_bce", "mean_validation_auroc",
    "sites": {name: loss}, "images" (trained on in each round), "validate_seconds",
    "train_seconds"}, null where there is none. At the end, if asked for, average.npz and
    refit.npz, which are candidates for the best model as in a federation.

    Args:
        site: Whose data to train with, e.g. a `PooledSite`.
        options: How to train; a round is `options.epochs` passes.
        initial: Checkpoint to start from: a body, and columns of any classes.
        measured_at: Name -> site on whose validation split models are measured; each has the
            classes of `site`.
        rounds: Largest number of rounds.
        patience: Rounds without a better model after which to stop; 0: never.
        average_decay: Of the average over late rounds, a candidate for the best model, as in
            `MergeIntoGlobalModel`. Default 0: there is none.
        refit_model: "best" or "last": that model with its columns refitted is a candidate, too.
        out: Folder; created where it does not exist.
        facts: For the manifests, in addition to those of a federated run.
        progress: Called as progress(rounds made, rounds).

    Raises:
        InputError: No model could be measured.
        SiteError: The initial checkpoint does not fit the site's network.
        StrategyError: The initial checkpoint does not fit the strategy; see
            `batch_norm_strategy.check_body`.
    """
    from surgical_aggregation.site.training.trainer import LocalTraining

    training = LocalTraining(site, options)
    warmed_up = _start(training, initial)
    splits = {name: measured_at[name].data("validation") for name in sorted(measured_at)}
    out.mkdir(parents=True, exist_ok=True)
    best: dict[str, Any] = {}
    moments: dict[str, Any] = {}
    last = rounds

    def measured(
        round_: int, name: str = "last", *, votes: bool = True
    ) -> tuple[Checkpoint, dict[str, Any]]:
        """Measure the model as it is and write it, also as the best if it is that."""
        nonlocal best
        losses, aurocs = _measured(training, splits)
        loss = fmean(losses.values())
        if better := votes and loss < best.get("value", math.inf):
            best = {"round": round_, "metric": "bce", "value": loss, "sites": losses}
        manifest = {
            **_manifest(initial, training, list(splits), round_),
            **site.network_facts,
            **made_now(),
            **facts,
            **({CANDIDATE: name} if name in (AVERAGE, REFIT) else {}),
            "validation": {"round": round_, "auroc": aurocs["classes"]},
            **({"best": best} if best else {}),
        }
        model = Checkpoint(training.labelled_variables(), Manifest(manifest))
        for file in [f"{name}.npz", *[BEST_FILE] * better]:
            save(model, out / file)
        return model, {
            "round": round_,
            "mean_validation_bce": _or_none(loss),
            "mean_validation_auroc": _or_none(fmean(aurocs["mean"].values())),
            "sites": {name: _or_none(value) for name, value in losses.items()},
        }

    with (out / ROUNDS_FILE).open("w", encoding="utf-8") as record:
        for round_ in range(rounds + 1):
            began = time.monotonic()
            model, line = measured(round_, votes=not (warmed_up and round_ == 0))
            validated = time.monotonic()
            if round_:
                moments = average(moments, model.variables, model.variables, average_decay)
            if round_ < last:
                training.train(round_)
            line |= {
                "images": training.images * options.epochs,
                "validate_seconds": validated - began,
                "train_seconds": time.monotonic() - validated if round_ < last else None,
            }
            record.write(json.dumps(line) + "\n")
            record.flush()
            if round_ == last:
                break
            progress(round_ + 1, rounds)
            if patience and best and round_ - best["round"] >= patience:
                last = min(last, round_ + 1)
    if means := averaged(model.variables, moments):
        _receive(training, means)
        measured(last, AVERAGE)
    if refit_model != "none" and (file := out / f"{refit_model}.npz").is_file():
        chosen = load(file)
        _receive(training, chosen.variables)
        training.refit()
        measured(chosen.manifest["round"], REFIT)
    if not best:
        raise InputError(
            f"no model of {last + 1} rounds has a validation loss that can be compared; see "
            f"{out / ROUNDS_FILE}. Is the learning rate {options.learning_rate:g} too high?"
        )


def _measured(
    training: LocalTraining, splits: Mapping[str, tf.data.Dataset]
) -> tuple[dict[str, float], dict[str, dict[str, Any]]]:
    """Validation metrics of the current model.

    Returns:
        Loss by site; AUROC by site: "mean" over classes, and of "classes".
    """
    values = {
        name: training.model.evaluate(data, training.classes) for name, data in splits.items()
    }
    if training.lacking:  # one-sided classes do not choose the best model
        learnt = [name for name in training.classes if name not in training.lacking]
        values = {name: mean_over(of, learnt) for name, of in values.items()}
    losses, means = (
        {name: of.get(metric, math.nan) for name, of in values.items()}
        for metric in ("bce", "auroc")
    )
    classes = {name: of_classes("auroc", of) for name, of in values.items()}
    return losses, {"mean": means, "classes": classes}


def _receive(training: LocalTraining, variables: Mapping[str, Any]) -> None:
    """Load a body and columns, under wire names, into the model."""
    body, columns = wire.split(variables)
    training.receive(body, columns)


def _start(training: LocalTraining, initial: Checkpoint) -> bool:
    """Load the initial model and warm up columns that it lacks; whether there were any."""
    body, columns = wire.split(initial.variables)
    check_body(training.options.strategy, body, training.model.kinds)
    training.receive(body, {name: columns[name] for name in training.classes if name in columns})
    unknown = training.unknown(columns)
    if unknown:
        training.warm_up(unknown)
    return bool(unknown)


def _manifest(
    initial: Checkpoint, training: LocalTraining, sites: list[str], round_: int
) -> dict[str, Any]:
    """Manifest of the model of a round, as in a federated run."""
    before = initial.manifest.get("classes", {})
    trained = {
        name: _trained(before.get(name, {}), sites, round_, training.lacking.get(name))
        if round_
        else before[name]
        for name in training.classes
        if round_ or name in before
    }
    of_initial = ("best", "job", *(("features", BEST_OF_ROUNDS) if round_ else ()))
    facts = {key: v for key, v in initial.manifest.items() if key not in of_initial}
    return {**facts, "classes": trained, "round": round_}


def _trained(
    before: Mapping[str, Any], sites: list[str], rounds: int, lacks: str | None
) -> dict[str, Any]:
    """Manifest entry of a class after some rounds; `lacks`: the kind of label that no image has."""
    facts = dict(before)
    for round_ in range(rounds):
        facts = with_round(facts, round_, sites, dict.fromkeys(sites, lacks) if lacks else {})
    return facts


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
