"""One run of a study, in a process of its own: train, predict the test sets, keep the result.

Usage: python -m cxr_studies.runner.one_run <folder of the run>

The folder's run.json says what to do, see `planned_run.Run`; for what it prints see
`training_process`.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from filelock import FileLock

from cxr_studies.plan import kept_tables
from cxr_studies.plan.row import Row
from cxr_studies.plan.run_folder import (
    GLOBAL,
    MODELS,
    SPEC_FILE,
    WORK,
    Result,
    read_result,
    write_result,
)
from cxr_studies.runner import (
    baseline_training,
    poc_training,
    prediction_files,
    provenance,
    simulator_training,
    training_process,
)
from cxr_studies.runner.training import Trained, Training
from cxr_studies.runner.training_process import Tell
from cxr_study.common import code_version
from cxr_study.deployment.deployed_run import DeployedRunError
from cxr_study.evaluation import test_split
from cxr_study.evaluation.predictions import Predictor
from cxr_study.runs.simulator_process import SimulationError
from cxr_study.training.network import Network
from surgical_aggregation.checkpoints.checkpoint import digest, load, save
from surgical_aggregation.site.training import tensorflow_setup


def run(folder: Path, tell: Tell) -> None:
    """Do a run, unless it is finished, from where an interruption has left it.

    Raises:
        SimulationError: A job failed in the simulator.
        DeployedRunError: A job failed in a POC.
        ValueError: Something that was given is unusable, or a model predicts nothing.
    """
    with FileLock(folder / ".lock"):  # another study may have it, too
        if read_result(folder) is not None:
            return
        began, code = time.time(), code_version.code()  # which may change meanwhile
        spec = json.loads((folder / SPEC_FILE).read_text(encoding="utf-8"))
        training = _training(spec, folder)
        trained = _train(training, spec["where"]["project"], tell)
        result = _test(training, trained, spec, folder, began, code)
        write_result(result, folder)
        shutil.rmtree(folder / WORK, ignore_errors=True)


def _train(training: Training, project: str | None, tell: Tell) -> Trained:
    if not training.row.federated:
        return baseline_training.train(training, tell)
    if project is None:
        return simulator_training.train(training, tell)
    return poc_training.train(training, Path(project), tell)


def _training(spec: Mapping[str, Any], folder: Path) -> Training:
    what, where = spec["what"], spec["where"]
    return Training(
        row=Row(what["row"]["method"], what["row"]["strategy"]),
        sites=tuple(where["sites"]),
        union=tuple(what["union"]),
        site_files=Path(where["site_files"]),
        initial_body=Path(where["initial_body"]),
        preset=what["preset"],
        settings=what["given"],
        folder=folder / WORK,
        last=what.get("model") == "last",
    )


def _test(
    training: Training,
    trained: Trained,
    spec: Mapping[str, Any],
    folder: Path,
    began: float,
    code: str,
) -> Result:
    network = Network(**spec["what"]["network"])
    tensorflow_setup.configure(1, 0)
    models = {site: load(path) for site, path in trained.models.items()}
    if len(set(trained.models.values())) == 1:  # they have it in common
        models = {GLOBAL: next(iter(models.values()))}
    predictor = Predictor(network)
    tests, predicted = {}, {}
    for name, site_file in spec["where"]["tests"].items():
        test = test_split.load(Path(site_file), training.union, network.image_size)
        tests[name] = kept_tables.keep(test.table, Path(spec["where"]["test_sets"]))
        for model, checkpoint in models.items():
            predicted[model, name] = prediction_files.thinned(predictor.predict(checkpoint, test))
    prediction_files.write(predicted, folder)
    for model, checkpoint in models.items():
        save(checkpoint, folder / MODELS / f"{model}.npz")
    first = next(iter(tests))
    return Result(
        began=began,
        seconds=time.time() - began,
        cores=tensorflow_setup.cores(),
        device=provenance.device(),
        code=code,
        rounds=trained.rounds,
        best_round=max(model.manifest["round"] for model in models.values()),
        losses=trained.losses,
        aurocs=trained.aurocs,
        images=trained.images,
        column_similarity=trained.column_similarity,
        tests=tests,
        classes={model: list(map(str, predicted[model, first].probabilities)) for model in models},
        digests={model: digest(checkpoint.variables) for model, checkpoint in models.items()},
    )


if __name__ == "__main__":
    sys.exit(
        training_process.main(partial(run, Path(sys.argv[1])), (SimulationError, DeployedRunError))
    )
