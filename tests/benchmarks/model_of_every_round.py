"""Which round's model to keep: several rules, compared by patient on the models of every round.

python tests/benchmarks/model_of_every_round.py <study> <data file> <folder of studies> <csv>

Makes the runs of a study without early stopping (`real-rounds`), keeps the model of every round,
and tests those that each of `RULES` would have chosen, next to the model that the run chose. A run
with an average or refitted columns chooses among more, so no rule is applied to it. Sites that
train alone choose each its own.
"""

import shutil
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from cxr_studies.analysis.across_folds import across_folds
from cxr_studies.analysis.study_results import gather
from cxr_studies.plan.data_file import read_data
from cxr_studies.plan.row import Row
from cxr_studies.plan.run_folder import (
    GLOBAL,
    PREDICTIONS_FILE,
    RUNS,
    read_result,
    write_arrays,
    write_result,
)
from cxr_studies.plan.study_file import Selection, read_study
from cxr_studies.runner import one_run, side_by_side, training
from cxr_studies.runner.run_study import run_studies
from cxr_study.cli.common import console
from cxr_study.evaluation import test_split
from cxr_study.evaluation.predictions import Predictor
from cxr_study.runs import job_results
from cxr_study.runs.job_results import json_lines
from cxr_study.training.network import Network
from surgical_aggregation.aggregation.average_of_rounds import average, averaged
from surgical_aggregation.aggregation.batch_norm_strategy import STRATEGIES
from surgical_aggregation.aggregation.model_selection import Measured, ModelComparison
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, load
from surgical_aggregation.site.training import tensorflow_setup

RULES = {  # name: metric, rounds made at most, patience (0: none)
    "bce of 16, patience 4": ("bce", 16, 4),
    "bce of 16": ("bce", 16, 0),
    "bce of 24": ("bce", 24, 0),
    "auroc of 16, patience 4": ("auroc", 16, 4),
    "auroc of 16": ("auroc", 16, 0),
    "auroc of 24": ("auroc", 24, 0),
    "last of 16": ("last", 16, 0),
    "last of 24": ("last", 24, 0),
    "average of 16": ("average", 16, 0),
    "average of 24": ("average", 24, 0),
}
DECAY = 0.9
MODELS, RECORDS = "every_round", "records"


@contextmanager
def models_kept(work, place):
    """Copy every new last.npz below `work` to <place>/<owner>/<round>.npz while a block runs."""
    over, seen = threading.Event(), {}

    def keep():
        while not over.wait(0.25):
            with suppress(OSError):  # a folder is removed while it is searched
                copy()

    def copy():
        for file in work.rglob("last.npz"):
            owner = GLOBAL if "server" in file.parts else file.parent.name
            half = place / f"{owner}.half.npz"
            place.mkdir(parents=True, exist_ok=True)
            try:
                written = file.stat().st_mtime_ns
                if seen.get(file) == written:
                    continue
                shutil.copyfile(file, half)
                made = load(half).manifest.get("round", 0)
            except (OSError, ValueError):  # replaced or removed meanwhile
                continue
            target = place / owner / f"{made}.npz"
            target.parent.mkdir(exist_ok=True)
            half.replace(target)
            seen[file] = written

    watcher = threading.Thread(target=keep, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        copy()


def make(folder):
    """One run in its own process, as `one_run`, with the model of every round kept."""
    train = training.train

    def keeping(run, work, on_round):
        with models_kept(work, folder / MODELS):
            models, trained = train(run, work, on_round)
        for file in [*work.rglob("*.jsonl"), *work.rglob("cross_val_results.json")]:
            target = folder / RECORDS / file.relative_to(work)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        return models, trained

    training.train = keeping
    return side_by_side.main(lambda on_round: one_run.run(folder, on_round))


def curves(run, folder):
    """Owner of models -> one line for each round: site -> (BCE, AUROC) of validation."""
    if run.row.federated:
        servers = sorted({file.parent for file in (folder / RECORDS).rglob("run_record.jsonl")})
        rounds = job_results.rounds(*servers)
        return {
            GLOBAL: [
                {name: (s.validation_bce, s.validation_auroc) for name, s in each.sites.items()}
                for each in rounds
            ]
        }
    return {
        site: [
            {site: (line["mean_validation_bce"], line["mean_validation_auroc"])}
            for line in json_lines(folder / RECORDS / site / "rounds.jsonl")
        ]
        for site in run.where["sites"]
    }


def chosen(curve, metric, rounds, patience):
    """The round whose model a rule chooses; as in a federation, never the initial one."""
    if metric in ("last", "average"):
        return rounds
    kept, last = ModelComparison(), rounds
    for round_, sites in enumerate(curve):
        if not 0 < round_ <= last:
            continue
        loss = {site: bce if metric == "bce" else 1 - auroc for site, (bce, auroc) in sites.items()}
        kept.consider(Measured(round_, frozenset(), loss, dict.fromkeys(loss, ())))
        if patience and round_ - kept.best.round >= patience:
            last = min(last, round_ + 1)  # which is measured at the end of training
    return kept.best.round


def checkpoint(folder, owner, metric, round_):
    """The model of a round, or the average up to it."""
    place = folder / MODELS / owner
    model = load(place / f"{round_}.npz")
    if metric != "average":
        return model
    moments = {}
    for made in range(1, round_ + 1):
        variables = load(place / f"{made}.npz").variables
        moments = average(moments, variables, variables, DECAY)
    return Checkpoint(averaged(model.variables, moments), model.manifest)


def tested(run, studies):
    """A run for each rule, with the predictions of the models that it chooses."""
    folder = studies / RUNS / run.key
    result, found = read_result(folder), curves(run, folder)
    predictor, images, predicted = Predictor(Network(**run.what["network"])), {}, {}
    for rule, (metric, rounds, patience) in RULES.items():
        scores, picked = {}, {}
        for owner, curve in found.items():
            round_ = picked[owner] = chosen(curve, metric, rounds, patience)
            for test, file in run.where["tests"].items():
                which = owner, metric == "average", round_, test
                if which not in predicted:
                    if test not in images:
                        size = predictor.network.image_size
                        images[test] = test_split.load(Path(file), run.what["union"], size)
                    model = checkpoint(folder, owner, metric, round_)
                    table = predictor.predict(model, images[test]).probabilities
                    predicted[which] = table[list(result.classes[owner])].to_numpy()
                scores[owner, test] = predicted[which]
        print(f"{run.row.name}, seed {run.seed}, {rule}: {picked}", flush=True)
        of_rule = replace(
            run,
            row=Row(run.row.method, f"{run.row.strategy} {rule}"),
            what={**run.what, "rule": rule},
        )
        place = studies / RUNS / of_rule.key
        place.mkdir(exist_ok=True)
        write_arrays(scores, place / PREDICTIONS_FILE)
        write_result(replace(result, best_round=max(picked.values())), place)
        yield of_rule


def compare(study, runs, data, folder, csv):
    """Write means and paired differences over the seeds of which all runs are finished."""
    unfinished = {run.seed for run in runs if read_result(folder / RUNS / run.key) is None}
    tensorflow_setup.configure(2, 0)
    finished = [run for run in runs if run.seed not in unfinished]
    plain = [run for run in finished if run.row.strategy in STRATEGIES]
    made = [each for run in plain for each in tested(run, folder)]
    found = across_folds(gather(study, [*finished, *made], folder), data.folds, processes=2)
    rules = {run.row.strategy: run.what["rule"] for run in made}
    rule, other = (found[each].map(rules).fillna("") for each in ("strategy", "other_strategy"))
    compared = (found["method"] == found["other_method"]) | (rule == other)
    wanted = (found["other_method"] == "") | compared
    single = found["group"].str.contains(": ")  # findings of a site, of the runs' own choice alone
    found[wanted & ((rule + other == "") | ~single)].to_csv(
        csv, index=False, float_format="%.6g", lineterminator="\n"
    )


def main(name, data_file, studies, csv):
    side_by_side.COMMAND = (sys.executable, __file__, "--one")
    data, folder = read_data(Path(data_file)), Path(studies)
    study = read_study(name).with_sites_of(data)
    made = run_studies([study], data, folder, Selection(), at_once=2, console=console)
    compare(study, made.runs[study.name], data, folder, csv)
    return "\n".join(f"{each.run.name}: {each.reason}" for each in made.failures)


if __name__ == "__main__":
    sys.exit(make(Path(sys.argv[2])) if sys.argv[1] == "--one" else main(*sys.argv[1:]))
