"""A round of our job beside one of FLARE's own parts: the same sites, images, network and threads.

Usage: python tests/benchmarks/stock_job.py [--sites 2 4 10] [--rounds 8] [--repeats 3]

Stock: ScatterAndGather, InTimeAccumulateWeightedAggregator, FullModelShareableGenerator and
TFModelPersistor at the server, an executor around Keras at the sites (`stock_client`); no filter.
All sites label the same classes, as FLARE's aggregator needs it. Both jobs run in FLARE's
simulator without its races, in turn, and sites ask for tasks as often as in production. A round is
from the server's "Round n started" to the next; the first does not count. Says the median and range
of the rounds, and what ours takes more: the median over the repeats with the range.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
from drawn_site import draw
from measure import SUPPORT, options

import tiny_job
from body_statistics import with_statistics
from cxr_study.training.network import build
from surgical_aggregation.checkpoints.checkpoint import save
from surgical_aggregation.site.contract.architecture import initial_body

HERE = Path(__file__).resolve().parent
STARTED = re.compile(r"^(\d{4}-\S+ [\d:,]+) .*Round (\d+) started", re.MULTILINE)
CLASSES = [f"Finding {number}" for number in range(14)]


def stock_job(folder, table, sites, rounds, network):
    """Write FLARE's job; returns its folder."""
    server = {
        "format_version": 2,
        "server": {"task_request_interval": 0.1},
        "components": [
            {
                "id": "persistor",
                "path": "nvflare.app_opt.tf.model_persistor.TFModelPersistor",
                "args": {"model": {"path": "drawn_site.network", "args": network}},
            },
            {
                "id": "shareable_generator",
                "path": "nvflare.app_common.shareablegenerators.full_model_shareable_generator"
                ".FullModelShareableGenerator",
            },
            {
                "id": "aggregator",
                "path": "nvflare.app_common.aggregators.intime_accumulate_model_aggregator"
                ".InTimeAccumulateWeightedAggregator",
                "args": {"expected_data_kind": "WEIGHTS"},
            },
        ],
        "workflows": [
            {
                "id": "train",
                "path": "nvflare.app_common.workflows.scatter_and_gather.ScatterAndGather",
                "args": {
                    "min_clients": len(sites),
                    "num_rounds": rounds,
                    "wait_time_after_min_received": 0,
                    "aggregator_id": "aggregator",
                    "persistor_id": "persistor",
                    "shareable_generator_id": "shareable_generator",
                },
            }
        ],
    }
    executor = {
        "path": "stock_client.StockExecutor",
        "args": {"table": str(table), "sites": len(sites)},
    }
    client = {"format_version": 2, "executors": [{"tasks": ["train"], "executor": executor}]}
    apps = {"server": server, "client": client}
    for side, configuration in apps.items():
        config, custom = (folder / f"app_{side}" / name for name in ("config", "custom"))
        config.mkdir(parents=True)
        custom.mkdir()
        (config / f"config_fed_{side}.json").write_text(json.dumps(configuration))
        for file in ("drawn_site.py", "stock_client.py"):
            (custom / file).write_text((HERE / file).read_text())
    deployed = {"app_server": ["server"], "app_client": list(sites)}
    meta = {"name": "stock", "resource_spec": {}, "min_clients": 1, "deploy_map": deployed}
    (folder / "meta.json").write_text(json.dumps(meta))
    return folder


def rounds_of(job, workspace, sites, body):
    """Run a job; seconds of each round but the first."""
    paths = os.pathsep.join([str(HERE), SUPPORT, os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [
            sys.executable, "-m", "cxr_study.runs.patched_simulator", str(job),
            "-w", str(workspace), "-c", ",".join(sites), "-t", str(len(sites)),
        ],
        capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": paths, "CXR_INITIAL_BODY": str(body)},
    )  # fmt: skip
    log = (workspace / "server/log.txt").read_text()
    marks = [datetime.strptime(when, "%Y-%m-%d %H:%M:%S,%f") for when, _ in STARTED.findall(log)]
    if run.returncode or len(marks) < 3:
        raise SystemExit(f"{job}: {run.stdout[-2000:]}{run.stderr[-2000:]}")
    return [(after - before).total_seconds() for before, after in pairwise(marks[1:])]


def compare(folder, number, wanted):
    network = {"backbone": wanted.backbone, "side": wanted.side, "hidden": 0}
    names = [f"site-{n + 1}" for n in range(number)]
    images = {"classes": CLASSES, "train": wanted.images, "validation": wanted.images // 4}
    sites = {
        name: draw(folder / name, augmentation="radiology", **images, **network) for name in names
    }
    body = folder / "body.npz"
    one_class = build(wanted.backbone, 1, image_size=wanted.side)
    save(with_statistics(initial_body(one_class)), body)
    settings = {"num_rounds": wanted.rounds, "min_clients": number, "strategy": "fedavg"}
    ours = tiny_job.make(
        folder / "ours", sites, settings={**settings, "learning_rate": 5e-5, "warmup_epochs": 1},
        site="drawn_site.DrawnSite",
    )  # fmt: skip
    table = folder / "ours/sites.json"
    how = {"classes": len(CLASSES), **network}
    stock = stock_job(folder / "stock", table, sites, wanted.rounds, how)
    took = {"stock": [], "ours": []}
    for repeat in range(wanted.repeats):
        for name, job in {"stock": stock, "ours": ours}.items():
            took[name].append(rounds_of(job, folder / f"{name}-{repeat}", names, body))
    for name, runs in took.items():
        rounds = np.concatenate(runs)
        print(
            f"{number:3d} sites, {name:5}: {np.median(rounds):6.2f} s a round "
            f"({rounds.min():.2f} to {rounds.max():.2f})"
        )
    more = [
        100 * (np.median(a) / np.median(b) - 1)
        for a, b in zip(took["ours"], took["stock"], strict=True)
    ]
    print(
        f"{number:3d} sites: ours takes {np.median(more):+.1f} % "
        f"({min(more):+.1f} to {max(more):+.1f} over {len(more)} pairs)",
        flush=True,
    )


def main():
    wanted = options(
        __doc__, sites=[2, 4, 10], rounds=8, repeats=3, backbone="small_densenet", side=64,
        images=512,
    )  # fmt: skip
    for number in wanted.sites:
        with tempfile.TemporaryDirectory() as folder:
            compare(Path(folder), number, wanted)


if __name__ == "__main__":
    main()
