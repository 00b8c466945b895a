"""Does the memory of server and sites grow from round to round? Ten sites, thirty rounds, a POC.

The network is tiny but for a layer of a megabyte, so that a model that is kept shows. The resident
memory of every process is noted after every round; a line is fitted from round 10 on, and to the
second half of the rounds. Takes some 8 GB and a few minutes. Allocators take and give back in steps
for hundreds of rounds, so the line of a short run climbs: --sites 2 --rounds 400 tells a leak from
that, in less memory.
"""

import os
import tempfile
import time
from pathlib import Path

import pandas as pd
import psutil
from measure import SUPPORT, options
from scipy import stats

import deployed
import tiny_job
from body_statistics import with_statistics
from cxr_study.deployment import processes
from cxr_study.deployment.flare_session import FlareSession
from surgical_aggregation.checkpoints.checkpoint import save
from tiny_site import FEATURES, TinySite

PATHS = [str(Path(__file__).resolve().parent), SUPPORT, os.environ.get("PYTHONPATH")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, PATHS))  # of the services
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

WIDTH = 512
"""Of the wide layers: 512 x 512 float32 are a megabyte."""

WARM_UP = 10
"""Rounds before the line."""

ROLES = {
    "server_train": "server",
    "runner_process": "server's job",
    "client_train": "sites, mean",
    "worker_process": "sites' jobs, mean",
}
"""End of a process's module -> what it is."""


class WideSite(TinySite):
    def model(self):
        return wide_model(len(self.classes))


def wide_model(classes):
    import keras

    x = inputs = keras.Input((3,))
    for name, units in {"wide_1": WIDTH, "wide_2": WIDTH, "dense": FEATURES}.items():
        x = keras.layers.Dense(units, activation="relu", name=name)(x)
    x = keras.layers.BatchNormalization(name="bn")(x)
    return keras.Model(inputs, keras.layers.Dense(classes, activation="sigmoid", name="head")(x))


def write_body(path):
    import keras

    from surgical_aggregation.site.contract.architecture import initial_body

    keras.utils.set_random_seed(7)
    save(with_statistics(initial_body(wide_model(1))), path)


def memory(folder):
    """Resident memory of a POC's processes, MB, by what they are; of sites one entry each."""
    found = []
    for process in processes.processes(folder):
        try:
            words, size = process.cmdline(), process.memory_info().rss
        except psutil.Error:
            continue  # it has ended
        modules = [word.rpartition(".")[2] for word in words if word.startswith("nvflare.")]
        if modules and modules[0] in ROLES:
            found.append((ROLES[modules[0]], size / 2**20))
    return found


def watched(system, job, poll):
    """Run a job, asking for its status every `poll` seconds; memory after every round."""
    samples, seen, asked, status = [], 0, 0.0, ""
    with FlareSession(system.lead) as session:
        job_id = session.submit(job)
        while not status.startswith("FINISHED"):
            made = deployed.rounds(system, job_id)
            if made > seen:
                samples += [(made, role, size) for role, size in memory(system.folder)]
                seen = made
            if time.monotonic() > asked + poll:
                status, asked = session.meta(job_id)["status"], time.monotonic()
            time.sleep(0.2)
    assert status == "FINISHED:COMPLETED", status
    return pd.DataFrame(samples, columns=["round", "process", "MB"])


def main():
    wanted = options(__doc__, sites=10, rounds=30, poll=1.0)
    sites = {
        f"site-{n}": {"classes": ["Edema", "Fracture", f"Sign {n}"], "images": 32}
        for n in range(1, wanted.sites + 1)
    }
    settings = {
        "num_rounds": wanted.rounds, "min_clients": len(sites), "warmup_epochs": 1, "threads": 1,
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_body(folder / "body.npz")
        began = time.monotonic()
        with deployed.poc_system(folder, sites) as system:
            job = tiny_job.make(folder / "job", sites, settings=settings, site="soak.WideSite")
            samples = watched(system, job, wanted.poll)
        print(f"{wanted.sites} sites, {wanted.rounds} rounds, {time.monotonic() - began:.0f} s")
    mean = samples.groupby(["process", "round"])["MB"].mean()
    half = max(WARM_UP, wanted.rounds // 2)
    spans = f"from {WARM_UP} on (95 % interval)     from {half} on"
    print(f"{'process':20} {'first':>7} {'last':>7}  MB a round {spans}")
    for role in ROLES.values():
        sizes = mean[role]
        first, last = sizes.iloc[[0, -1]]
        lines = "     ".join(line(sizes, start) for start in (WARM_UP, half))
        print(f"{role:20} {first:7.1f} {last:7.1f}  {lines}")


def line(sizes, start):
    """Slope of a process's memory from a round on, with its interval, in words."""
    late = sizes[sizes.index >= start]
    fitted = stats.linregress(late.index, late)
    low, high = stats.t.interval(0.95, len(late) - 2, fitted.slope, fitted.stderr)
    return f"{fitted.slope:+.3f} ({low:+.3f} to {high:+.3f})"


if __name__ == "__main__":
    main()
