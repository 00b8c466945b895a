"""CPU seconds until each kind of process is ready, and how many modules it has imported by then.

Medians of several starts. CPU seconds leave out what other processes use; but on a busy machine
each second does less.
"""

import re
import subprocess
import sys
from pathlib import Path
from statistics import median

from measure import options

JOB = Path(__file__).parents[2] / "jobs/surgical"
SIMULATOR = "import nvflare.private.fed.app.simulator.simulator"
POC = "import nvflare.private.fed.app"
STUDY = "import cxr_studies.runner.one_run"
FINISH = """
import os, sys
used = os.times()
print(used.user + used.system, len(sys.modules), file=sys.__stdout__)
"""
VERSION = "from cxr_study.cli.main import app; app(['--version'], standalone_mode=False)"
TENSORFLOW = """
from surgical_aggregation.site.training import tensorflow_setup
tensorflow_setup.configure(1, 0)
"""
TRAINING = f"""{TENSORFLOW}
import cxr_study.training.input_pipeline, cxr_study.training.network
import surgical_aggregation.site.training.trainer
"""


def components(side):
    """Modules that the surgical job's configuration names."""
    file = JOB / f"app_{side}/config/config_fed_{side}.json"
    return ", ".join(sorted(set(re.findall(r'"path": "([\w.]+)\.\w+"', file.read_text()))))


def start(code):
    done = subprocess.run(
        [sys.executable, "-c", code + FINISH], stdout=subprocess.PIPE, text=True, check=True
    )
    return [float(number) for number in done.stdout.split()[-2:]]


def main():
    times = options(__doc__, times=3).times
    server, site = components("server"), components("client")
    print("process                              CPU s   modules")
    for kind, code in {
        "surgagg --version": VERSION,
        "server, simulator": f"{SIMULATOR}, {server}",
        "server, POC": f"{POC}.server.runner_process, {server}",
        "site, simulator, before TensorFlow": f"{SIMULATOR}_worker, {site}",
        "site, simulator": f"{SIMULATOR}_worker, {site}\n{TRAINING}",
        "site, POC": f"{POC}.client.worker_process, {site}\n{TRAINING}",
        "TensorFlow alone": TENSORFLOW,
        "run of a study, before TensorFlow": STUDY,
        "run of a study": f"{STUDY}\n{TRAINING}",
    }.items():
        seconds, modules = map(median, zip(*(start(code) for _ in range(times)), strict=True))
        print(f"{kind:35} {seconds:6.2f} {modules:9.0f}", flush=True)


if __name__ == "__main__":
    main()
