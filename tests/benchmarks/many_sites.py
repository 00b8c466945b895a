"""A hundred sites at one real FLARE server over TLS: seconds a round, memory, wrong results.

Sites have classes as drawn, and a model of constants (see `constant_site`), so every number of
every round is checked. In each round a tenth of the sites fails; some are killed on the way. Takes
some 190 MB of memory for each site with a model of 28 MB. Several numbers of sites: one after the
other.
    python tests/benchmarks/many_sites.py --sites 100 --rounds 20
    python tests/benchmarks/many_sites.py --sites 4 --megabytes 1024 --rounds 3 --absent 0 --dead 0
"""

import json
import math
import os
import re
import signal
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil
from constant_site import FEATURES, drawn, first_column, step
from measure import SUPPORT, options

import tiny_job
from cxr_deployment import processes
from cxr_deployment.flare_session import FlareSession
from cxr_deployment.poc_system import PocSystem
from cxr_study.jobs import job_export
from cxr_study.jobs.job import Job
from deployed import wait
from surgical_aggregation.aggregation.batch_norm_strategy import VariableKinds
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest, save
from surgical_aggregation.wire import variables as wire

ROOT = Path(__file__).resolve().parents[2]
PATHS = [str(Path(__file__).resolve().parent), SUPPORT, os.environ.get("PYTHONPATH")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, PATHS))  # of the services
os.environ.setdefault("MALLOC_ARENA_MAX", "2")  # so that all sites fit into one machine
os.environ.setdefault("NVFLARE_CLIENT_OUTCOME_WAIT_TIMEOUT", "20")  # for the dead; FLARE's: 900

CLASSES = [f"Sign {n}" for n in range(40)]


def drawn_classes(number):
    """Site -> its classes, 2 to 6 of them, as of `TinySite`."""
    sites = {}
    for site in (f"site-{n:03d}" for n in range(number)):
        shuffled = sorted(CLASSES, key=lambda label, site=site: drawn(site, label))
        sites[site] = {"classes": shuffled[: 2 + int(5 * drawn(site))]}
    return sites


def write_body(path, megabytes, variables):
    size = int(megabytes * 2**20 / 4 / variables)
    values = {f"layer_{n:03d}/kernel": drawn("body", n) for n in range(variables)}
    body = {name: np.full(size, value, np.float32) for name, value in values.items()}
    facts = {"head_features": FEATURES, "initial_body_sha256": digest(body)}
    save(Checkpoint(body, {**facts, **VariableKinds().facts()}), path)


def write_job(target, table, folder, wanted, settings):
    sites = list(json.loads(table.read_text()))
    job_export.write(Job.of("surgical").with_settings(settings, sites=sites), target)
    of_site = {"site": "{SITE_NAME}", "table": str(table)}
    constant = {"folder": str(folder), "absent": wanted.absent, "seconds": wanted.slow}
    for file in target.glob("app_*/config/config_fed_client.json"):
        with tiny_job.edited(file) as client:
            client["components"][0] = tiny_job.part("tiny_site.TinySite", of_site, id="site")
            executor = tiny_job.part("constant_site.ConstantExecutor", {**of_site, **constant})
            tasks = ["train", "validate", "test", "refit"]
            client["executors"] = [{"tasks": tasks, "executor": executor}]
            client["task_result_filters"] = []
    return target


class Watch:
    """What the server's job process takes, while a job runs; kills sites on the way."""

    def __init__(self, system, job_id, folder, dead):
        self.system, self.folder = system, folder
        self.record = system.server / job_id / "run_record.jsonl"
        self.dead, self.peak = dead, {"RssAnon": 0, "RssFile": 0}
        self.lines = []  # of the record, which FLARE takes away when the job is over
        self.rounds = []  # of each: its line, CPU seconds and memory at its end
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()

    def _run(self):
        process = None
        while not self.done.wait(0.2):
            with suppress(psutil.Error, OSError):
                process = process or self._job_process()
                if now := process and _status(process.pid):  # empty: it has ended
                    self.peak = {kind: max(most, now[kind]) for kind, most in self.peak.items()}
                    self._record_rounds(process, now)

    def _job_process(self):
        found = processes.find_processes(self.system.server)
        return next((p for p in found if processes.any_runs([p], ".runner_process")), None)

    def _record_rounds(self, process, now):
        if self.record.is_file():
            self.lines = [json.loads(line) for line in self.record.read_text().splitlines()]
        made = [line for line in self.lines if line["event"] == "round"]
        for line in made[len(self.rounds) :]:
            times = process.cpu_times()
            self.rounds.append({**line, "cpu": times.user + times.system, **now})
            print(f"round {line['round']}: {line['seconds']:.1f} s, "
                  f"memory {now['RssAnon'] + now['RssFile']:.0f} MB", flush=True)  # fmt: skip
        if len(made) >= 2 and self.dead:
            for one in processes.find_processes(self.system.kit(self.dead.pop())):
                one.kill()  # as a machine that is gone: a service that ends in order says so


def _status(pid):
    """Resident memory of a process by kind, MB."""
    text = Path(f"/proc/{pid}/status").read_text()
    return {k: int(v) / 1024 for k, v in re.findall(r"^(Rss(?:Anon|File)):\s+(\d+)", text, re.M)}


def wrong_results(folder, sites, rounds, missing):
    """What is not as it should be, in words: every value that every site received."""
    wrong = []
    before = {}
    for round_ in range(rounds + 1):  # the last model is measured, not trained
        now = {}
        for path in sorted(folder.glob(f"{round_}-*.json")):
            site = path.stem.partition("-")[2]
            output = json.loads(path.read_text())
            wrong += [f"round {round_}: {site} got column of {name}" for name in output["foreign"]]
            for name, value in output["received"].items():
                if value is None or now.setdefault(name, value) != value:
                    wrong.append(f"round {round_}: {site} got another {name}")
        if round_:
            there = [site for site in sorted(sites) if site not in missing.get(round_ - 1, ())]
            for name, value in now.items():
                if value != _mean(name, before, there, sites, round_ - 1):
                    wrong.append(f"round {round_}: {name} is not the mean")
        before = {**before, **now}
        if not now:
            wrong.append(f"round {round_}: no site received a model")
    return wrong


def _mean(name, before, there, sites, round_):
    label = wire.class_of(name)
    senders = [site for site in there if label is None or label in sites[site]["classes"]]
    if not senders:
        return before[name]
    total = np.float64(0)
    for site in senders:
        start = np.float32(before[name]) if name in before else first_column(site, label)
        total += np.float64(start + step(site, round_)) * (1 / np.float64(len(senders)))
    return float(np.float32(total))


def main():
    wanted = options(
        __doc__, sites=[100], rounds=20, megabytes=28.0, variables=604, absent=0.1, dead=2,
        requests=100, slow=0.0, silence=120, wait=120, folder="",
    )  # fmt: skip
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # no service may stay behind
    for number in wanted.sites:
        with tempfile.TemporaryDirectory(dir=wanted.folder or None) as temporary:
            measure(Path(temporary), number, wanted)


def measure(folder, number, wanted):
    sites = drawn_classes(number)
    table, received = folder / "sites.json", folder / "received"
    table.write_text(json.dumps(sites))
    received.mkdir()
    write_body(folder / "body.npz", wanted.megabytes, wanted.variables)
    settings = {
        "num_rounds": wanted.rounds, "strategy": "fedavg", "tracking": "none",
        "min_clients": max(1, number // 2), "wait_seconds": wanted.wait,
        "site_silence": wanted.silence, "requests_per_second": wanted.requests,
    }  # fmt: skip
    job = write_job(folder / "job", table, received, wanted, settings)
    system = PocSystem(folder / "poc")
    system.prepare(ROOT / "poc/project.yml", sites=list(sites))
    began = time.monotonic()
    try:
        system.start({"CXR_INITIAL_BODY": str(folder / "body.npz")}, timeout=900)
        print(f"{number} sites connected after {time.monotonic() - began:.0f} s", flush=True)
        with FlareSession(system.lead) as session:
            job_id = session.submit(job)
            dead = sorted(sites)[-wanted.dead :] if wanted.dead else []
            with Watch(system, job_id, received, dead) as watch:
                status = wait(session, job_id, timeout=math.inf)["status"]
    finally:
        system.stop()
    report(wanted, sites, status, watch, received, time.monotonic() - began)


def report(wanted, sites, status, watch, received, seconds):
    missing = {}
    for line in watch.lines:
        if line["event"] in ("refused", "silent") and line["task"] == "train":
            missing.setdefault(line["round"], set()).add(line["site"])
    wrong = wrong_results(received, sites, wanted.rounds, missing)
    if not watch.rounds:
        raise SystemExit(f"{status}: no round was made")
    steady = watch.rounds[1:] or watch.rounds
    cpu = np.diff([one["cpu"] for one in watch.rounds])
    print(f"{status}; {len(watch.rounds)} rounds, {seconds:.0f} s in all")
    print(f"seconds a round, median: {np.median([one['seconds'] for one in steady]):.1f}")
    if len(cpu):
        print(f"CPU seconds of the server's job process a round, median: {np.median(cpu):.1f}")
    print(f"peak memory of it, MB: {watch.peak['RssAnon']:.0f} anonymous, "
          f"{watch.peak['RssFile']:.0f} of files")  # fmt: skip
    print(f"absent a round: {sorted(len(names) for names in missing.values())}")
    print(f"wrong results: {len(wrong)}")
    for text in wrong[:10]:
        print(f"  {text}")
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
