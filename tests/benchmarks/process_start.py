"""CPU seconds until each kind of process is ready, and how many modules it has imported by then.

Each starts several times; the median is printed. CPU seconds, for those that others use do not
count; but on a busy machine each of them does less.
"""

import re
import subprocess
import sys
from pathlib import Path
from statistics import median

from measure import options

JOB = Path(__file__).parents[2] / "jobs/surgical"
SIMULATOR = "nvflare.private.fed.app.simulator.simulator"
POC = "nvflare.private.fed.app"
STUDY = "cxr_study.studies.runner.one_run"
FINISH = """
import os, sys
used = os.times()
print(used.user + used.system, len(sys.modules), file=sys.__stdout__)
"""
VERSION = """
from cxr_study.cli.main import app
app(["--version"], standalone_mode=False)
"""
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
    file = JOB / f"app_{side}/config/config_fed_{side}.conf"
    paths = re.findall(r'path = "([\w.]+)\.\w+"', file.read_text(encoding="utf-8"))
    return ", ".join(sorted(set(paths)))


def start(code):
    done = subprocess.run(
        [sys.executable, "-c", code + FINISH], stdout=subprocess.PIPE, text=True, check=True
    )
    seconds, modules = done.stdout.split()[-2:]
    return float(seconds), int(modules)


def main():
    times = options(__doc__, times=3).times
    server, site = components("server"), components("client")
    simulated = f"import {SIMULATOR}_worker, {site}\n"
    programs = {
        "surgagg --version": VERSION,
        "server, simulator": f"import {SIMULATOR}, {server}",
        "server, POC": f"import {POC}.server.runner_process, {server}",
        "site, simulator, before TensorFlow": simulated,
        "site, simulator": simulated + TRAINING,
        "site, POC": f"import {POC}.client.worker_process, {site}\n{TRAINING}",
        "TensorFlow alone": TENSORFLOW,
        "run of a study, before TensorFlow": f"import {STUDY}",
        "run of a study": f"import {STUDY}\n{TRAINING}",
    }
    print("process                              CPU s   modules")
    for kind, code in programs.items():
        starts = [start(code) for _ in range(times)]
        seconds, modules = (median(values) for values in zip(*starts, strict=True))
        print(f"{kind:35} {seconds:6.2f} {modules:9.0f}", flush=True)


if __name__ == "__main__":
    main()
