"""Where a run of a study spends its time, and what running several side by side saves.

Usage: python tests/benchmarks/study_run.py [--setting 4] [--side-by-side 3]
"""

import argparse
import tempfile
import threading
import time
from pathlib import Path

import psutil

from cxr_study.runs.training_process import ROUND
from cxr_study.studies.plan import plan
from cxr_study.studies.plan.data_file import read_data
from cxr_study.studies.plan.data_sets import data_sets
from cxr_study.studies.plan.selection import Selection
from cxr_study.studies.plan.setting_files import decode
from cxr_study.studies.plan.study_file import read_study
from cxr_study.studies.runner import make
from cxr_study.studies.runner.machine import Machine

ROLES = ("the sites", "the server", "files and predictions")


class CpuSeconds(threading.Thread):
    """Samples four times a second what every descendant process has used."""

    def __init__(self):
        super().__init__(daemon=True)
        self.used = {}
        self.done = threading.Event()

    def run(self):
        """Sample until done."""
        while not self.done.wait(0.25):
            for process in psutil.Process().children(recursive=True):
                try:
                    times, what = process.cpu_times(), role(process.cmdline())
                except psutil.Error:
                    continue
                self.used[process.pid] = (what, times.user + times.system)

    def total(self, what=None):
        """Of all processes so far, or of those with a role; the ended ones too."""
        return sum(used for role_, used in self.used.values() if what in (None, role_))


def role(command):
    """What a process does in a run."""
    line = " ".join(command)
    if "simulator_worker" in line:
        return ROLES[0]
    return ROLES[1] if "cxr_study.runs.simulator " in line else ROLES[2]


def profile(run, folder):
    """Make a run alone and print where its time went; the seconds it took."""
    cpu = CpuSeconds()
    marks = []

    def told(_, doing):
        if not marks or doing.startswith(ROUND):
            marks.append((time.perf_counter(), cpu.total()))

    cpu.start()
    make.run_all([run], folder, Machine.here(), told)
    marks.append((time.perf_counter(), cpu.total()))
    cpu.done.set()
    rounds = len(marks) - 2
    seconds, total = marks[-1][0] - marks[0][0], marks[-1][1]
    print(f"{run.name}: {rounds} rounds, {seconds:.0f} s, {total:.0f} CPU seconds")
    for name, start, end, times in (
        ("start and first round", 0, 1, 1),
        ("every further round", 1, -2, rounds - 1),
        ("end and predictions", -2, -1, 1),
    ):
        wall, used = (marks[end][i] - marks[start][i] for i in (0, 1))
        print(
            f"  {name:22s} {wall / times:6.1f} s {used / times:7.1f} CPU seconds; "
            f"together {used / total:4.0%} of the CPU seconds"
        )
    for what in ROLES:
        print(f"  {what:22s} {cpu.total(what) / total:4.0%} of the CPU seconds")
    return seconds


def main():
    """Print where one run's time went, and how long several take side by side."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--setting", default="4")
    parser.add_argument("--side-by-side", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wanted = Selection((options.setting,), ("surgical",), options.side_by_side + 1)
        study, data = read_study("clients"), read_data("phantom")
        found = data_sets(data, plan.check(study, data, wanted), folder / "data")
        first, *others = plan.runs(study, data, found, folder, wanted)
        decode(found, [], folder / "sites", first.what["network"]["image_size"])
        alone = profile(first, folder / "runs")
        began = time.perf_counter()
        make.run_all(others, folder / "runs", Machine.here(), lambda run, doing: None)
        together = (time.perf_counter() - began) / len(others)
        print(f"{len(others)} side by side: a run takes {together / alone:.2f} of a run alone")


if __name__ == "__main__":
    main()
