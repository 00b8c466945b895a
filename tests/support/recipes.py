"""The recipe in FLARE's simulator and in a POC of its own, in a process where NumPy replaces Keras.

python recipes.py simulator <folder> <site table> <initial body> <settings, as JSON>
python recipes.py poc <folder> <site table> <initial body> <settings, as JSON>

What it left stands in <folder>/found.json then. For a POC, HOME and NVFLARE_POC_WORKSPACE must be
private.
"""

import json
import sys
from pathlib import Path

from nvflare.recipe import PocEnv, ProdEnv, SimEnv

from cxr_study.jobs.job import Job
from cxr_study.jobs.recipe import JobRecipe
from numpy_site import NumpySite
from surgical_aggregation.checkpoints.checkpoint import load


def simulated(recipe, sites, folder):
    """Where it ran."""
    run = recipe.execute(SimEnv(clients=sites, workspace_root=str(folder / "simulated")))
    return str(run.get_result())


def received(folder):
    return {path.name: path.read_text() for path in folder.glob("app*/config/*")}


def in_poc(recipe, sites, folder):
    """What it left at server and sites, and how a second one began; in a POC that ends here."""
    recipe.set_per_site_config({sites[0]: {"learning_rate": 0.3}})  # soon gets worse
    env = PocEnv(clients=sites, extra={"login_timeout": 60})  # on a busy machine
    try:
        job = recipe.execute(env).get_job_id()
        result = Path(env.get_job_result(job, timeout=360)) / "workspace"
        kit = Path(env._get_admin_startup_kit_path())
        submitted = recipe.execute(ProdEnv(str(kit), login_timeout=60))
        found = {
            "status": env.get_job_status(job),
            "classes": sorted(load(result / "models/last.npz").manifest["classes"]),
            "record": (result / "run_record.jsonl").read_text().splitlines(),
            "received": {site: received(kit.parent / site / job) for site in sites},
            "submitted": submitted.get_status(),
        }
        submitted.abort()
    finally:
        env.stop(clean_up=True)
    return found


if __name__ == "__main__":
    where, folder, table, initial_body, settings = sys.argv[1:]
    sites = list(json.loads(Path(table).read_text()))
    own = {**json.loads(settings), "initial_body": initial_body}
    recipe = JobRecipe(
        Job.asked(own.pop("method", "surgical"), sites=sites, settings=own),
        site=NumpySite("{SITE_NAME}", table),
        code="marked" if where == "poc" else "installed",
    )
    found = {"simulator": simulated, "poc": in_poc}[where](recipe, sites, Path(folder))
    Path(folder, "found.json").write_text(json.dumps(found))
