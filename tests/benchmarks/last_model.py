"""The last model of 16 rounds minus the best one with early stopping, paired by patient.

python tests/benchmarks/last_model.py <data file> <folder of studies> <csv>

Takes the runs of the study `real-last`, trains those that are missing, and prints what validation
would have chosen in each.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from cxr_studies.analysis.across_folds import across_folds
from cxr_studies.analysis.study_results import gather
from cxr_studies.plan.data_file import read_data
from cxr_studies.plan.row import Row
from cxr_studies.plan.study_file import Selection, read_study
from cxr_studies.runner.run_study import run_studies
from cxr_study.cli.common import console


def main(data_file, studies, csv):
    data, folder = read_data(data_file), Path(studies)
    study = read_study("real-last").with_sites_of(data)
    made = run_studies([study], data, folder, Selection(), at_once=1, console=console)
    results = gather(study, made.runs[study.name], folder)
    first = study.scenarios[0].name

    def renamed(run):
        if run.scenario == first:
            return run
        return replace(run, scenario=first, row=Row(run.row.method, f"{run.row.strategy} last"))

    together = replace(results, runs=tuple(map(renamed, results.runs)))
    found = across_folds(together, data.folds, processes=2)
    pairs = found["strategy"] == found["other_strategy"] + " last"
    found[pairs].to_csv(csv, index=False, float_format="%.6g", lineterminator="\n")
    for run in results.finished:
        made = results.results[run.key]
        losses, aurocs = (np.array(each, float) for each in (made.losses, made.aurocs))
        by_loss, by_auroc = np.nanargmin(losses), np.nanargmax(aurocs)
        print(
            f"{run.scenario}, {run.row.strategy}, seed {run.seed}: round {made.best_round} tested; "
            f"smallest BCE in {by_loss} (AUROC {aurocs[by_loss]:.3f}), largest AUROC in {by_auroc} "
            f"({aurocs[by_auroc]:.3f}), last {aurocs[-1]:.3f}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
