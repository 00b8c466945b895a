"""Run a job in FLARE's simulator and say where each round's time went and what memory it took."""

import json
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

from measure import options, sampled, seconds, simulated

from cxr_phantom.demo_data import demo_study
from cxr_study.jobs import job_export
from cxr_study.jobs.job import Job
from cxr_study.runs import job_results
from cxr_study.runs.finished_run import server_folder
from cxr_study.runs.job_results import read_events
from cxr_study.runs.simulator_process import simulate

peak = Counter()


def look(process, command):
    if name := simulated(command):
        peak[name] = max(peak[name], process.memory_info().rss)


def main():
    wanted = options(__doc__, job="jobs/surgical", set=[])
    settings = {k: json.loads(v) for k, _, v in (item.partition("=") for item in wanted.set)}
    demo_study()
    with tempfile.TemporaryDirectory() as folder:
        job, workspace = Path(folder, "job"), Path(folder, "workspace")
        job_export.write(Job.of(wanted.job).with_settings(settings), job)
        with sampled(look):
            wall, _ = seconds(partial(simulate, job, workspace))
        server = server_folder(workspace)
        trained = {entry.round: entry.sites.values() for entry in job_results.rounds(server)}
        rounds = [event for event in read_events(server) if event["event"] == "round"]
    print("round   seconds   slowest site trains + validates   beyond")
    beyond = []
    for event in rounds:
        sites = trained[event["round"]]
        slowest = max(site.train_seconds + site.validate_seconds for site in sites)
        beyond.append(event["seconds"] - slowest)
        print(f"{event['round']:5d} {event['seconds']:9.2f} {slowest:33.2f} {beyond[-1]:8.2f}")
    if steady := beyond[1:]:  # round 0 starts the processes, reads the data and warms up
        mean = sum(steady) / len(steady)
        print(f"beyond training and validation, round 1 on: mean {mean:.2f} s")
    print(f"whole run {wall:.1f} s")
    for name, size in sorted(peak.items()):
        print(f"peak memory {name}: {size / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
