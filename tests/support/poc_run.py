"""A recipe in a POC of its own, started and stopped here; says as JSON what it left.

python poc_run.py <folder> <site table> <initial body>; HOME and NVFLARE_POC_WORKSPACE are private.
"""

import json
import sys
from pathlib import Path

from nvflare.recipe import PocEnv, ProdEnv

from cxr_study.jobs.recipe import SurgicalAggregationRecipe
from numpy_site import NumpySite
from surgical_aggregation.checkpoints.checkpoint import load


def received(folder):
    """Configurations in a site's folder of the job, by name."""
    files = folder.glob("app*/config/*")
    return {path.name: path.read_text() for path in files}


def main(folder, table, initial_body):
    sites = list(json.loads(Path(table).read_text()))
    recipe = SurgicalAggregationRecipe(
        sites=sites,
        num_rounds=8,
        patience=1,
        warmup_epochs=1,
        initial_body=initial_body,
        site=NumpySite("{SITE_NAME}", table),
    )
    recipe.set_per_site_config({sites[0]: {"learning_rate": 0.3}})  # soon gets worse
    env = PocEnv(clients=sites, extra={"login_timeout": 60})  # on a busy machine
    try:
        job = recipe.execute(env).get_job_id()
        result = Path(env.get_job_result(job, timeout=360))
        kit = Path(env._get_admin_startup_kit_path())
        found = {
            "status": env.get_job_status(job),
            "classes": sorted(load(result / "workspace/models/last.npz").manifest["classes"]),
            "record": (result / "workspace/run_record.jsonl").read_text().splitlines(),
            "received": {site: received(kit.parent / site / job) for site in sites},
        }
        submitted = recipe.execute(ProdEnv(str(kit)))
        found["submitted"] = submitted.get_status()
        submitted.abort()
    finally:
        env.stop(clean_up=True)
    Path(folder, "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
