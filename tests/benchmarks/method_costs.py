"""What every method of a study costs a round, side by side: seconds, CPU seconds and bytes.

Usage: python tests/benchmarks/method_costs.py [--study beyond] [--rounds 8]

Two sites of the phantom in FLARE's simulator, one run after the other. Seconds are medians and
ranges over the rounds after the first; CPU seconds are of all processes and the whole run; bytes
are all that the loopback device carried in the run, headers and FLARE's own messages included, so
nothing else must use it.
"""

import tempfile
from pathlib import Path
from statistics import median

import psutil
from measure import options, sampled, seconds

from cxr_phantom.demo_data import demo_study
from cxr_studies.plan.study_file import read_study
from cxr_study.jobs import job_export
from cxr_study.jobs.job import Job
from cxr_study.runs.finished_run import server_folder
from cxr_study.runs.job_results import read_events
from cxr_study.runs.simulator_process import simulate


def measured(row, settings, folder):
    """Seconds of each round after the first, CPU seconds and bytes of one run."""
    job, workspace, used = folder / "job", folder / "workspace", {}

    def look(process, _):
        times = process.cpu_times()
        used[process.pid] = times.user + times.system

    job_export.write(Job.of(row.method).with_settings(settings), job)
    before = psutil.net_io_counters(pernic=True)["lo"].bytes_sent
    with sampled(look):
        wall, _ = seconds(lambda: simulate(job, workspace))
    sent = psutil.net_io_counters(pernic=True)["lo"].bytes_sent - before
    events = read_events(server_folder(workspace))
    rounds = [event["seconds"] for event in events if event["event"] == "round"]
    return rounds[1:], wall, sum(used.values()), sent


def main():
    wanted = options(__doc__, study="beyond", rounds=8)
    study = read_study(wanted.study)
    demo_study()
    print(f"{'':34}{'seconds a round':>24}{'whole run':>12}{'CPU':>8}{'MB a run':>10}")
    for row in study.rows:
        if not row.federated:  # there are no messages
            continue
        settings = {**study.settings_of(row), "strategy": row.job_strategy}
        settings |= {"num_rounds": wanted.rounds, "tracking": "none"}
        if "freeze_statistics_at" in settings:
            settings["freeze_statistics_at"] = wanted.rounds // 2
        with tempfile.TemporaryDirectory() as folder:
            rounds, wall, cpu, sent = measured(row, settings, Path(folder))
        spread = f"{median(rounds):.2f} ({min(rounds):.2f} to {max(rounds):.2f})"
        name = f"{row.method} {row.strategy}"
        print(f"{name:34}{spread:>24}{wall:10.1f} s{cpu:6.0f} s{sent / 1e6:10.2f}", flush=True)


if __name__ == "__main__":
    main()
