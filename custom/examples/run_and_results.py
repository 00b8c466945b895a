"""Run a federation of two sites, and read its results.

Run its cells (# %%) one by one in an editor, or all: python run_and_results.py

It takes about two minutes, and writes runs/example.
"""

# %% Run: two sites of drawings, NIH's classes at one and CheXpert's at the other.
import json
import subprocess
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from cxr_study.evaluation.summary_json import Summary
from surgical_aggregation.checkpoints.checkpoint import load

RUN = Path("runs/example")
if not RUN.exists():
    subprocess.run(
        ["surgagg", "run", "surgical", "--phantom", "--out", str(RUN), "--local-models"], check=True
    )

# %% The answer: mean AUROC on each site's test split, with 95 % intervals by patient. "labelled"
# are the classes that the site labels itself, "unlabelled" those that it gets from the others.
summary = Summary.from_json((RUN / "report/summary.json").read_text())
means = pd.DataFrame([vars(mean) for mean in summary.means])
print(means.pivot(index=["site", "model"], columns="classes", values="auroc").round(3))
print(means[["site", "model", "classes", "low", "high", "defined", "of"]].round(3))

# %% Class by class: who labels it, how many positives tested it, and whether the local model is
# better. Overlapping intervals are inconclusive.
rows = pd.DataFrame([vars(row) for row in summary.test])
wide = rows.pivot_table(index=["class_name", "site"], columns="model", values="auroc")
print(wide.round(3))
print({name: list(sites) for name, sites in summary.trained_by.items()})

# %% Warnings and refusals: read them before the numbers.
for warning in summary.warnings:
    print(warning)
for refusal in summary.refusals:
    print(refusal)

# %% Rounds: loss on the validation splits, of the global model that started each round.
rounds = pd.Series({entry.round: entry.mean_validation_bce for entry in summary.rounds})
axis = rounds.plot(marker="o", xlabel="round", ylabel="validation loss")
axis.axvline(summary.best.round, color="grey", linestyle=":")
plt.savefig("rounds.png")
print("rounds.png; best round", summary.best.round)

# %% The model itself: arrays by name, and a manifest that says who trained what.
best = load(RUN / "workspace/server/simulate_job/models/best.npz")
print({name: value.shape for name, value in list(best.variables.items())[:3]})
print(json.dumps(best.manifest["classes"], indent=1)[:300])
