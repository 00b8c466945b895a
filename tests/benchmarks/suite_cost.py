"""Where the tests' time goes: CPU seconds by file and kind of process, peak memory and processes.

python tests/benchmarks/suite_cost.py --numprocesses auto --dist loadgroup

Every argument is pytest's. A process belongs to the test that was running when it was started,
which pytest says in its environment.
"""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from time import monotonic, process_time, sleep  # tests may replace the module's

import psutil
import pytest

HERE = Path(__file__)
KINDS = {
    "simulator": r"(cxr_study|simulator)\.simulator ",
    "simulated site": r"simulator_worker",
    "site's service": r"client_train",
    "server's service": r"server_train",
    "site's job": r"client\.worker_process",
    "server's job": r"server\.runner_process",
    "surgagg": r"/surgagg ",
    "other python": r"python",
}
"""Kind of process -> what its command holds."""

MARK = "SUITE_COST"
"""Environment variable by which all processes of a run are known; the folder of its notes."""

TENSORFLOW = 450e6
"""Resident memory from which a process counts as one with TensorFlow, bytes."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item):
    """Around a phase of a test: note what it took of this process."""
    wall, cpu = monotonic(), process_time()
    try:
        return (yield)
    finally:
        line = [item.nodeid, monotonic() - wall, process_time() - cpu]
        with Path(os.environ[MARK], str(os.getpid())).open("a") as file:
            file.write(json.dumps(line) + "\n")


pytest_runtest_setup = pytest_runtest_teardown = pytest_runtest_call


class Processes:
    """All processes whose environment says that they belong to a run of the tests.

    Args:
        run: What stands behind `MARK` there.
    """

    def __init__(self, run):
        self.run = run
        self.found = {}
        self.peak = Counter()

    def look(self):
        """Note what each process has used, and what there is at this moment."""
        now = Counter()
        for process in psutil.process_iter():
            with suppress(psutil.Error):  # it may end meanwhile
                environment = process.environ()
                if environment.get(MARK) != self.run:
                    continue
                memory, times = process.memory_info().rss, process.cpu_times()
                test = environment.get("PYTEST_CURRENT_TEST", "").partition("::")[0]
                used = times.user + times.system
                self.found[process] = (test, kind(" ".join(process.cmdline())), used)
                now["processes"] += 1
                now["MB of memory"] += memory // 10**6
                now["processes with TensorFlow"] += memory > TENSORFLOW
        self.peak |= now

    def by(self, key):
        """Test file (0) or kind (1) -> CPU seconds and number of the processes tests started."""
        cpu, number = Counter(), Counter()
        for entry in self.found.values():
            if entry[0]:
                cpu[entry[key]] += entry[2]
                number[entry[key]] += 1
        return cpu, number


def kind(command):
    return next((name for name, seen in KINDS.items() if re.search(seen, command)), "else")


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")]))
        environment = {**os.environ, MARK: folder, "PYTHONPATH": path}
        processes = Processes(folder)
        command = [sys.executable, "-m", "pytest", "-p", HERE.stem, *sys.argv[1:]]
        began = monotonic()
        run = subprocess.Popen(command, env=environment)
        while run.poll() is None:
            processes.look()
            sleep(0.25)
        seconds = monotonic() - began
        lines = [json.loads(x) for f in Path(folder).iterdir() for x in f.read_text().splitlines()]
    wall, own = Counter(), Counter()
    for test, took, cpu in lines:
        file = test.partition("::")[0]
        wall[file] += took
        own[file] += cpu
    children, number = processes.by(0)
    print(f"\n{'file':58}{'seconds':>9}{'CPU own':>9}{'children':>9}{'processes':>10}")
    for file in sorted(wall, key=lambda f: -own[f] - children[f])[:40]:
        print(f"{file:58}{wall[file]:9.1f}{own[file]:9.1f}{children[file]:9.1f}{number[file]:10}")
    print(f"\n{'kind of process':58}{'CPU':>9}{'number':>9}")
    cpu, number = processes.by(1)
    for name, value in cpu.most_common():
        print(f"{name:58}{value:9.1f}{number[name]:9}")
    print(f"{'the tests themselves':58}{own.total():9.1f}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"\n{seconds:.0f} s, {own.total() + cpu.total():.0f} CPU seconds in tests", end="; ")
    print(f"{used.ru_utime + used.ru_stime:.0f} of pytest and what it waited for")
    print(", ".join(f"{value:,.0f} {name}" for name, value in processes.peak.items()), "at once")
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
