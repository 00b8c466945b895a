"""Does the memory of server and sites grow from round to round? Ten sites, thirty rounds, a POC.

The network is tiny but for a layer of a megabyte, so that a model that is kept shows. After every
round the resident memory of every process is noted; a line is fitted from round 10 on, when
whatever fills once has filled. Takes some 8 GB and a few minutes. Allocators take and give back in
steps for hundreds of rounds, so that the line of a short run climbs: --sites 2 --rounds 400 tells a
leak from that, in less memory.

Usage: python tests/benchmarks/soak.py [--sites 10] [--rounds 30] [--poll 1] [--csv soak.csv]
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PATHS = [str(HERE), str(HERE.parent / "support")]
sys.path[:0] = PATHS  # here, and in the services
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*PATHS, os.environ.get("PYTHONPATH")]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import pandas as pd  # noqa: E402
import psutil  # noqa: E402
from scipy import stats  # noqa: E402

import deployed  # noqa: E402
import tiny_job  # noqa: E402
from body_statistics import with_statistics  # noqa: E402
from cxr_study.deployment import services  # noqa: E402
from cxr_study.deployment.flare_session import FlareSession  # noqa: E402
from surgical_aggregation.checkpoints.checkpoint import save  # noqa: E402
from tiny_site import FEATURES, TinySite  # noqa: E402

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
    """The tiny site with a network of a megabyte."""

    def model(self):
        """The network, in a new instance."""
        return wide_model(len(self.classes))


def wide_model(classes):
    """The tiny network behind wide layers."""
    import keras

    x = inputs = keras.Input((3,))
    for name, units in {"wide_1": WIDTH, "wide_2": WIDTH, "dense": FEATURES}.items():
        x = keras.layers.Dense(units, activation="relu", name=name)(x)
    x = keras.layers.BatchNormalization(name="bn")(x)
    return keras.Model(inputs, keras.layers.Dense(classes, activation="sigmoid", name="head")(x))


def write_body(path):
    """Write the body that the sites start from."""
    import keras

    from surgical_aggregation.site.contract.architecture import initial_body

    keras.utils.set_random_seed(7)
    save(with_statistics(initial_body(wide_model(1))), path)


def job(folder, sites, rounds):
    """The surgical job with wide sites."""
    settings = {"num_rounds": rounds, "min_clients": len(sites), "warmup_epochs": 1, "threads": 1}
    return tiny_job.make(folder, sites, settings=settings, site="soak.WideSite")


def memory(folder):
    """Resident memory of a POC's processes, MB, by what they are; of sites one entry each."""
    found = []
    for process in services.processes(folder):
        try:
            words, size = process.cmdline(), process.memory_info().rss
        except psutil.Error:
            continue  # it has ended
        modules = [word.rpartition(".")[2] for word in words if word.startswith("nvflare.")]
        if modules and modules[0] in ROLES:
            found.append((ROLES[modules[0]], size / 2**20))
    return found


def watched(system, submitted, poll):
    """Run a job to its end; a sample of every process after every round.

    The server is asked how the job is every `poll` seconds.
    """
    samples, seen, asked, status = [], 0, 0.0, ""
    with FlareSession(system.lead) as session:
        job_id = session.submit(submitted)
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


def show(samples):
    """Print first, last and slope with its 95 % interval, for every kind of process."""
    mean = samples.groupby(["process", "round"])["MB"].mean()
    print(f"{'process':20} {'first':>7} {'last':>7}  MB a round from {WARM_UP} on (95 % interval)")
    for role in ROLES.values():
        sizes = mean[role]
        late = sizes[sizes.index >= WARM_UP]
        line = stats.linregress(late.index, late)
        margin = stats.t.ppf(0.975, len(late) - 2) * line.stderr
        print(
            f"{role:20} {sizes.iloc[0]:7.1f} {sizes.iloc[-1]:7.1f}  {line.slope:+.3f} "
            f"({line.slope - margin:+.3f} to {line.slope + margin:+.3f})"
        )


def main():
    """Print a table, and write the samples where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sites", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument(
        "--poll", type=float, default=1.0, help="seconds; as surgagg deploy submit does"
    )
    parser.add_argument("--csv", type=Path)
    wanted = parser.parse_args()
    shared = {"classes": ["Edema", "Fracture"], "images": 32}
    own = {f"site-{n}": [*shared["classes"], f"Sign {n}"] for n in range(1, wanted.sites + 1)}
    sites = {name: {**shared, "classes": classes} for name, classes in own.items()}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_body(folder / "body.npz")
        began = time.monotonic()
        with deployed.poc_system(folder, sites) as system:
            submitted = job(folder / "job", sites, wanted.rounds)
            samples = watched(system, submitted, wanted.poll)
        print(f"{wanted.sites} sites, {wanted.rounds} rounds, {time.monotonic() - began:.0f} s")
    if wanted.csv:
        samples.to_csv(wanted.csv, index=False)
    show(samples)


if __name__ == "__main__":
    main()
