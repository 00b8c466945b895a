"""Where a run of a study spends its time, and what running several side by side saves."""

import tempfile
import time
from functools import partial
from pathlib import Path

from measure import options, sampled, seconds, simulated
from rich.console import Console

from cxr_studies.plan import plan
from cxr_studies.plan.data_file import read_data
from cxr_studies.plan.data_sets import data_sets
from cxr_studies.plan.scenario_files import decode
from cxr_studies.plan.selection import Selection
from cxr_studies.plan.study_file import read_study
from cxr_studies.runner import side_by_side
from cxr_studies.runner.training_process import ROUND

ROLES = ("the sites", "the server", "files and predictions")


class CpuSeconds:
    """What every process has used: id -> what it does in a run, CPU seconds."""

    def __init__(self):
        self.used = {}

    def look(self, process, command):
        times, what = process.cpu_times(), simulated(command)
        role = ROLES[2 if what is None else what == "server"]
        self.used[process.pid] = (role, times.user + times.system)

    def total(self, *roles):
        """Of all processes so far, or of those with a role; the ended ones too."""
        return sum(used for role, used in self.used.values() if role in (roles or ROLES))


def profile(run, folder):
    """Make a run alone and print where its time went; the seconds it took."""
    cpu = CpuSeconds()
    marks = []

    def mark():
        marks.append((time.perf_counter(), cpu.total()))

    with sampled(cpu.look), side_by_side.start(run, folder / run.key) as process:
        mark()
        for line in process.stdout:
            if line.startswith(ROUND):
                mark()
        mark()
    rounds = len(marks) - 2
    took, total = marks[-1][0] - marks[0][0], marks[-1][1]
    print(f"{run.name}: {rounds} rounds, {took:.0f} s, {total:.0f} CPU seconds")
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
    for role in ROLES:
        print(f"  {role:22s} {cpu.total(role) / total:4.0%} of the CPU seconds")
    return took


def main():
    wanted = options(__doc__, scenario="4", side_by_side=3)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        selection = Selection((wanted.scenario,), ("surgical",), wanted.side_by_side + 1)
        study, data = read_study("clients"), read_data("phantom")
        found = data_sets(data, plan.check(study, data, selection), folder / "data")
        first, *others = plan.runs(study, data, found, folder, selection)
        decode(found, [], folder / "sites", first.what["network"]["image_size"])
        alone = profile(first, folder / "runs")
        make = partial(side_by_side.run_all, others, folder / "runs", None, Console(stderr=True))
        together = seconds(make)[0] / len(others)
        print(f"{len(others)} side by side: a run takes {together / alone:.2f} of a run alone")


if __name__ == "__main__":
    main()
