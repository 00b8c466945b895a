"""Surgical aggregation with FLARE's FedAvgRecipe, SimEnv, and a plain Keras script.

    python job.py

North labels circles and squares, south circles and crosses; the resulting model predicts all
three. FLARE provides the job, rounds and communication; this project the aggregator (each class
over the sites that label it), the filters of what a site receives and sends, and the checkpoint.
"""

import sys
from pathlib import Path

from client import SITES, drawings, load_model, network
from nvflare.fuel.utils.constants import FrameworkType
from nvflare.recipe import SimEnv, set_per_site_config
from nvflare.recipe.fedavg import FedAvgRecipe

from surgical_aggregation.aggregation.metrics import auroc
from surgical_aggregation.checkpoints.checkpoint import load, save
from surgical_aggregation.server.access.class_filters import CheckResult, SelectHead
from surgical_aggregation.server.models.aggregator import SurgicalAggregator
from surgical_aggregation.server.models.persistor import CheckpointPersistor
from surgical_aggregation.site.class_declaration import DeclareNames
from surgical_aggregation.site.contract.architecture import initial_body
from surgical_aggregation.wire import variables as wire


def recipe(folder, rounds):
    """The job; its initial body is written to the folder."""
    save(initial_body(network(1)), folder / "initial.npz")
    made = FedAvgRecipe(
        name="hello_surgical",
        min_clients=len(SITES),
        num_rounds=rounds,
        train_script=str(Path(__file__).with_name("client.py")),
        framework=FrameworkType.RAW,
        aggregator=SurgicalAggregator(strategy="fedavg"),
        model_persistor=CheckpointPersistor(file=str(folder / "initial.npz")),
        key_metric="auroc",
    )
    set_per_site_config(made, {site: {} for site in SITES})
    for site, classes in SITES.items():
        made.add_client_output_filter(DeclareNames(classes=classes), ["train"], [site])
    made.add_server_output_filter(SelectHead(), ["train"])
    made.add_server_input_filter(CheckResult(), ["train"])
    made._job.set_app_packages(["surgical_aggregation"])  # installed, so not copied into the job
    made.add_server_config({"server": {"task_request_interval": 0.1}})
    return made


def main():
    """Train, and print the model's AUROC for the classes of both sites."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/hello").resolve()
    recipe(folder, rounds=4).execute(SimEnv(clients=list(SITES), workspace_root=str(folder)))
    model = load(folder / "hello_surgical/server/simulate_job/models/last.npz")
    classes = wire.classes_of(model.variables)
    keras_model = network(len(classes))
    load_model(keras_model, model.variables, classes)
    images, labels = drawings(classes, seed=9)
    found = auroc(labels, keras_model.predict(images, verbose=0))
    for name, value in zip(classes, found, strict=True):
        print(f"{name}: AUROC {value:.3f}")


if __name__ == "__main__":
    main()
