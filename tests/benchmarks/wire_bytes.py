"""What a round puts on the wire between the server and one site of 14 classes, by strategy.

Serialises the task and the result as the job's own filters leave them. With --simulate also counts
every frame that a site of a real simulator run sends and receives, in two runs of different length,
whose difference is what a round costs: with FLARE's headers, requests and heartbeats.

Usage: python tests/benchmarks/wire_bytes.py [--simulate]
"""

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from nvflare.apis.dxo import DXO, DataKind
from nvflare.fuel.utils import fobs
from nvflare.private.fed.utils.fed_utils import fobs_initialize

from cxr_study.data.labels.vocabulary import NIH_CLASSES, UNION_CLASSES
from cxr_study.jobs import job_templates
from cxr_study.jobs.methods import Row
from cxr_study.phantom.demo_data import embedded_initial_body
from cxr_study.runs.simulation import simulate
from surgical_aggregation.aggregation.strategy import kept_at_site
from surgical_aggregation.server.access.select_head import SelectHead
from surgical_aggregation.server.models.global_model import (
    GlobalModel,
    MergeIntoGlobalModel,
    to_learnable,
)
from surgical_aggregation.site.contract.architecture import variable_kinds
from surgical_aggregation.site.contract.site import Site
from surgical_aggregation.site.label_head import LabelHead

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from flare import Engine, context

ROWS = {
    Row("surgical", "fedavg"): NIH_CLASSES,
    Row("surgical", "fedbn"): NIH_CLASSES,
    Row("surgical", "fedbn+"): NIH_CLASSES,
    Row("personalised", "fedavg"): NIH_CLASSES,
    Row("personalised", "fedbn+"): NIH_CLASSES,
    Row("vanilla", "fedavg"): UNION_CLASSES,
    Row("partial_loss", "fedbn+"): UNION_CLASSES,
}
"""Row -> classes of the site's head."""

COUNTING = """
import os, sys
if "simulator_worker" in " ".join(sys.orig_argv):
    from nvflare.fuel.f3.sfm.conn_manager import ConnManager
    from nvflare.fuel.f3.sfm.sfm_conn import SfmConnection
    path = os.environ["COUNT_FOLDER"] + "/" + sys.orig_argv[sys.orig_argv.index("--client") + 1]
    process, send = ConnManager.process_frame, SfmConnection.send_frame
    def note(way, size):
        with open(path, "a") as file: file.write(f"{way} {size}\\n")
    def process_frame(self, connection, frame):
        note("received", len(frame))
        return process(self, connection, frame)
    def send_frame(self, prefix, headers, payload):
        send(self, prefix, headers, payload)
        note("sent", prefix.length)
    ConnManager.process_frame, SfmConnection.send_frame = process_frame, send_frame
"""
"""A site's process counts the frames of its connections."""


class FourteenClasses(Site):
    """As much of a site as `LabelHead` asks for."""

    def __init__(self, classes):
        super().__init__()
        self.held = classes

    @property
    def classes(self):
        return self.held

    def model(self):
        raise NotImplementedError

    def data(self, split, *, training=False, first_pass=0):
        raise NotImplementedError


def serialised(model, row, classes):
    """Bytes of a task and of a result: what SelectHead, the strategy and LabelHead leave of it."""
    trained = {v.path: v.numpy() for v in model.weights}
    body = {path: value for path, value in trained.items() if not path.startswith("head/")}
    kernel, bias = trained["head/kernel"], trained["head/bias"]
    columns = {name: (kernel[:, i], bias[i : i + 1]) for i, name in enumerate(classes)}
    method = job_templates.METHODS[row.method]
    held = {} if method.personal_head else columns
    fl_ctx = context("nih", classes if held else (), engine=Engine(site=FourteenClasses(classes)))
    learnable = to_learnable(GlobalModel(body, held))
    task = MergeIntoGlobalModel().learnable_to_shareable(learnable, fl_ctx)
    task = SelectHead().process(task, fl_ctx)
    kept = kept_at_site(row.strategy, variable_kinds(model))
    kept |= set() if held else trained.keys() - body.keys()
    sent = {path: value for path, value in trained.items() if path not in kept}
    result = DXO(DataKind.WEIGHTS, data=sent).to_shareable()
    if held:
        result = LabelHead().process(result, fl_ctx)
    return len(fobs.dumps(task)), len(fobs.dumps(result))


def counted(row, rounds, folder):
    """Bytes that site nih received and sent in a run of so many rounds."""
    name = f"{row.name}-{rounds}"
    job, counts = folder / name / "job", folder / name / "counts"
    counts.mkdir(parents=True)
    settings = {"num_rounds": rounds, "threads": 1, "warmup_epochs": 1}
    job_templates.configure(
        row.method, job, sites=("nih", "chexpert"), strategy=row.strategy, settings=settings,
        per_site={},
    )  # fmt: skip
    paths = ":".join([str(folder), *sys.path])
    simulate(
        job, folder / name / "workspace", ("nih", "chexpert"),
        environment={"PYTHONPATH": paths, "COUNT_FOLDER": str(counts)},
    )  # fmt: skip
    total = {"received": 0, "sent": 0}
    for line in (counts / "nih").read_text().splitlines():
        way, size = line.split()
        total[way] += int(size)
    return np.array(list(total.values()))


def per_round(rows, folder):
    """Row -> bytes that site nih receives and sends in a round, from runs of 2 and of 4 rounds."""
    (folder / "sitecustomize.py").write_text(COUNTING)
    embedded_initial_body()
    with ThreadPoolExecutor(2) as pool:
        runs = {
            row: [pool.submit(counted, row, rounds, folder) for rounds in (2, 4)] for row in rows
        }
        return {row: (more.result() - few.result()) / 2 for row, (few, more) in runs.items()}


def show(title, sizes):
    """Print a table of {row: (bytes to the site, bytes from it)} against FedAvg."""
    print(f"\n{title}")
    print(f"{'':28}{'to the site':>14}{'from the site':>16}{'both':>14}{'of FedAvg':>12}")
    against = sum(next(iter(sizes.values())))
    for row, (task, result) in sizes.items():
        both = task + result
        name = f"{row.method} {row.strategy}"
        print(f"{name:28}{task:14,.0f}{result:16,.0f}{both:14,.0f}{both / against:12.1%}")


def main():
    """Print a table for each network, and one of a real run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulate", action="store_true")
    options = parser.parse_args()
    fobs_initialize()
    from cxr_study.training.network import build

    networks = {"small_densenet": 64, "densenet121": 224}
    for backbone, size in networks.items():
        sizes = {}
        for row, classes in ROWS.items():
            model = build(backbone, len(classes), image_size=size)
            sizes[row] = serialised(model, row, classes)
        count = sum(int(np.prod(v.shape)) for v in model.weights)
        show(f"{backbone}, {count:,} numbers: bytes of a round, serialised", sizes)
    if options.simulate:
        with tempfile.TemporaryDirectory() as folder:
            rows = [Row("surgical", "fedavg"), Row("surgical", "fedbn+")]
            show("small_densenet: bytes of a round in the simulator", per_round(rows, Path(folder)))


if __name__ == "__main__":
    main()
