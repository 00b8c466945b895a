"""Seconds a round takes in FLARE's simulator, and the same training without FLARE.

Both train the small DenseNet on the phantom by surgical aggregation with FedBN+, in one process a
site with as many threads: 2 sites, and 4 that are halves of the 2. Without FLARE a process for each
site gets the model through a pipe, measures and trains it, and sends it back; the parent averages
in NumPy. The first round, which starts and warms up, is left out.

Usage: python tests/benchmarks/flare_overhead.py [--rounds 8]
"""

import argparse
import multiprocessing
import tempfile
import time
from pathlib import Path

import numpy as np

from cxr_study.data.labels.vocabulary import CHEXPERT_CLASSES, NIH_CLASSES
from cxr_study.data.sites.partition import decisions, write_sites
from cxr_study.data.sites.site_file import read_site_file, write_site_file
from cxr_study.jobs import job_folder, job_templates
from cxr_study.phantom.cached_phantom import embedded_initial_body, embedded_study
from cxr_study.runs.finished_run import server_folder
from cxr_study.runs.results import read_events
from cxr_study.runs.simulated_run import prepare
from cxr_study.runs.simulation import simulate
from surgical_aggregation.checkpoints.checkpoint import load
from surgical_aggregation.site.training.tensorflow_setup import cores
from surgical_aggregation.wire import variables as wire

SITES = {"nih": NIH_CLASSES, "chexpert": CHEXPERT_CLASSES}


def halves(folder):
    """Site files, in one folder, of the two sites cut into two each; their names."""
    names = []
    for pool, classes in SITES.items():
        site_file = read_site_file(embedded_study().sites / f"{pool}.yaml")
        for path in write_sites(site_file, folder / pool, (classes, classes), seed=0):
            half = read_site_file(path)
            write_site_file(
                folder / path.name,
                dataset=half.dataset,
                labels=half.labels,
                images=half.images,
                split=half.split,
                classes=list(classes),
                **decisions(half, classes),
            )
            names.append(path.stem)
    return tuple(names)


def with_flare(sites, site_files, threads, rounds, folder):
    """Seconds of each round in the simulator."""
    settings = {"num_rounds": rounds, "threads": threads, "min_clients": len(sites)}
    job = folder / f"job-{len(sites)}"
    job_templates.configure("surgical", job, sites=sites, settings=settings, per_site={})
    workspace = folder / f"workspace-{len(sites)}"
    simulate(job, workspace, sites, environment={"CXR_SITES": str(site_files)})
    record = read_events(server_folder(workspace))
    return [event["seconds"] for event in record if event["event"] == "round"], job


def train(site, site_files, knobs, threads, pipe):
    """One site's process: a round for every model that comes."""
    from surgical_aggregation.site.training import tensorflow_setup

    tensorflow_setup.configure(threads, 0)
    from cxr_study.training.chest_xray_site import ChestXraySite
    from surgical_aggregation.aggregation.head import columns
    from surgical_aggregation.site.training.trainer import LocalTraining
    from surgical_aggregation.site.training.training_options import TrainingOptions

    options = {name: knobs[name] for name in TrainingOptions.__dataclass_fields__ if name in knobs}
    training = LocalTraining(
        ChestXraySite(site, str(site_files), batch_size=knobs["batch_size"]),
        TrainingOptions(**options),
    )
    for body, held in iter(pipe.recv, None):
        own = {name: held[name] for name in training.classes if name in held}
        training.receive(body, own)
        if unknown := training.unknown(own):
            training.warm_up(unknown)
        training.evaluate("validation", training.classes)
        training.train()
        trained = training.variables()
        body = {path: value for path, value in trained.items() if not path.startswith("head/")}
        pipe.send(wire.join(body, columns(training.head())))


def without_flare(sites, site_files, threads, rounds, knobs):
    """Seconds of each round of the same training."""
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for site in sites:
        ours, theirs = context.Pipe()
        arguments = (site, site_files, knobs, threads, theirs)
        processes.append(context.Process(target=train, args=arguments, daemon=True))
        processes[-1].start()
        pipes.append(ours)
    model = dict(load(embedded_initial_body()).variables)
    seconds = []
    for _ in range(rounds):
        began = time.perf_counter()
        for pipe in pipes:
            pipe.send(wire.split(model))
        results = [pipe.recv() for pipe in pipes]
        for name in sorted({name for result in results for name in result}):
            model[name] = np.mean([result[name] for result in results if name in result], axis=0)
        seconds.append(time.perf_counter() - began)
    for pipe, process in zip(pipes, processes, strict=True):
        pipe.send(None)
        process.join()
    return seconds


def show(name, seconds):
    """Print a line: median and range; the median."""
    median = float(np.median(seconds))
    print(f"  {name:14} {median:6.2f}   {min(seconds):.2f} to {max(seconds):.2f}")
    return median


def main():
    """Print a table for each number of sites."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=8)
    rounds = parser.parse_args().rounds
    embedded_initial_body()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        cut = folder / "sites"
        for sites, site_files in (
            (tuple(SITES), embedded_study().sites),
            (halves(cut), cut),
        ):
            prepare(site_files, sites, 64)
            threads = max(1, cores() // len(sites))
            print(f"{len(sites)} sites, {threads} threads each: seconds of a round, median, range")
            flare, job = with_flare(sites, site_files, threads, rounds, folder)
            alone = without_flare(sites, site_files, threads, rounds, job_folder.knobs(job))
            first, second = show("with FLARE", flare[1:]), show("without", alone[1:])
            print(f"  overhead       {first - second:6.2f}   {first / second - 1:.0%}")


if __name__ == "__main__":
    main()
