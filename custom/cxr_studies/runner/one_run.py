"""One run of a study, in its own process: train, predict the test sets, keep the result.

Usage: python -m cxr_studies.runner.one_run <folder of the run>

The folder's run.json describes it, see `run_folder.Run`; for what it prints see `side_by_side`.
"""

from __future__ import annotations

import shutil
import sys
import time
from functools import partial
from pathlib import Path

from filelock import FileLock

from cxr_studies.plan.run_folder import (
    FEATURES_FILE,
    GLOBAL,
    MODELS,
    PREDICTIONS_FILE,
    WORK,
    Result,
    featured_rows,
    keep_table,
    read_result,
    read_spec,
    write_arrays,
    write_result,
)
from cxr_studies.runner import provenance, side_by_side, training
from cxr_studies.runner.training import OnRound
from cxr_study.common import code_version
from cxr_study.evaluation import test_split
from cxr_study.evaluation.predictions import Predictor
from cxr_study.training.network import Network
from surgical_aggregation.checkpoints.checkpoint import digest, load, save
from surgical_aggregation.site.training import tensorflow_setup


def run(folder: Path, on_round: OnRound) -> None:
    """Make a run, from where an interruption has left it; nothing to do if it is finished.

    A lock on the folder keeps two studies from making the same run at once.

    Args:
        folder: Of the run, with its description.
        on_round: Called with the number of rounds made so far.

    Raises:
        JobFailedError: A job failed, in the simulator or a POC.
        ValueError: An input is unusable, or a model predicts nothing.
    """
    with FileLock(folder / ".lock"):  # another study may have it, too
        if read_result(folder) is not None:
            return
        began = time.time()
        code, sources = code_version.code(), provenance.sources()  # which may change meanwhile
        planned = read_spec(folder)
        models, trained = training.train(planned, folder / WORK, on_round)
        network = Network(**planned.what["network"])
        tensorflow_setup.configure(1, 0)
        found = {site: load(path) for site, path in models.items()}
        if len(set(models.values())) == 1:  # they have it in common
            found = {GLOBAL: next(iter(found.values()))}
        predictor = Predictor(network)
        tests, probabilities, features, classes = {}, {}, {}, {}
        for name, site_file in planned.where["tests"].items():
            test = test_split.load(Path(site_file), planned.what["union"], network.image_size)
            tests[name] = keep_table(test.table, Path(planned.where["test_sets"]))
            rows = featured_rows(len(test.table))  # the features of all images are large
            for model, checkpoint in found.items():
                predicted = predictor.predict(checkpoint, test)
                probabilities[model, name] = predicted.probabilities.to_numpy()
                features[model, name] = predicted.features[rows]
                classes[model] = list(map(str, predicted.probabilities))
        write_arrays(probabilities, folder / PREDICTIONS_FILE)
        write_arrays(features, folder / FEATURES_FILE)
        for model, checkpoint in found.items():
            save(checkpoint, folder / MODELS / f"{model}.npz")
        result = Result(
            **vars(trained),
            began=began,
            seconds=time.time() - began,
            cores=tensorflow_setup.cores(),
            device=device(),
            code=code,
            sources=sources,
            machine=provenance.machine(),
            best_round=max(checkpoint.manifest["round"] for checkpoint in found.values()),
            tests=tests,
            classes=classes,
            digests={model: digest(checkpoint.variables) for model, checkpoint in found.items()},
        )
        write_result(result, folder)
        shutil.rmtree(folder / WORK, ignore_errors=True)


def device() -> str:
    """Name of the GPU, or "CPU", as TensorFlow reports it; after `tensorflow_setup.configure`."""
    import tensorflow as tf

    details = map(tf.config.experimental.get_device_details, tf.config.list_physical_devices("GPU"))
    names = dict.fromkeys(str(each.get("device_name", "GPU")) for each in details)
    return ", ".join(names) or "CPU"


if __name__ == "__main__":
    sys.exit(side_by_side.main(partial(run, Path(sys.argv[1]))))
