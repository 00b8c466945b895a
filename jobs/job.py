"""One of the papers' methods as a FLARE job: run, submit or export it.

    python jobs/job.py --set num_rounds=2
    python jobs/job.py --method personalised --strategy fedbn --env poc
    python jobs/job.py --preset paper --env prod --startup-kit kits/lead@hospital.org
    python jobs/job.py --export --export-dir exported

FLARE itself reads --export and --export-dir. Without site files and an initial body (CXR_SITES at
the sites, CXR_INITIAL_BODY at the server) the simulator trains on the phantom.
"""

import argparse
from pathlib import Path

from nvflare.recipe import PocEnv, ProdEnv, SimEnv

from cxr_study.jobs.job import Job
from cxr_study.jobs.methods import METHODS
from cxr_study.jobs.presets import PRESETS
from cxr_study.jobs.recipe import JobRecipe
from surgical_aggregation.aggregation.batch_norm_strategy import STRATEGIES


def main() -> None:
    """Run, submit or export the job that the command line describes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--method", choices=METHODS, default="surgical")
    parser.add_argument("--strategy", choices=STRATEGIES, help="default: the method's own")
    parser.add_argument("--preset", action="append", choices=PRESETS, help="may be repeated")
    parser.add_argument("--sites", default="nih,chexpert", help="names, by comma")
    parser.add_argument("--set", action="append", default=[], metavar="[SITE:]SETTING=VALUE")
    parser.add_argument("--env", choices=("sim", "poc", "prod"), default="sim")
    parser.add_argument("--workspace", default="runs/sim", help="folder for the simulator's runs")
    parser.add_argument("--startup-kit", type=Path, help="the submitter's, for --env prod")
    options = parser.parse_args()

    sites = options.sites.split(",")
    own = {"strategy": options.strategy} if options.strategy else {}
    try:
        preset = ",".join(options.preset or ())
        job = Job.asked(options.method, sites=sites, preset=preset, given=options.set, settings=own)
        # FLARE's own POC has no allow-list for the job's classes.
        recipe = JobRecipe(job, code="marked" if options.env == "poc" else "installed")
        if options.env == "sim":
            env = SimEnv(clients=sites, workspace_root=options.workspace)
        elif options.env == "poc":
            env = PocEnv(clients=sites)
        else:
            kit = options.startup_kit or parser.error("--env prod needs --startup-kit")
            env = ProdEnv(startup_kit_location=str(kit), username=kit.name)
    except ValueError as error:
        parser.error(str(error))
    try:
        run = recipe.execute(env)
        print(f"result   {run.get_result(clean_up=False)}")
        print(f"status   {run.get_status()}")
    except (Exception, KeyboardInterrupt):
        env.stop()  # or the services of a POC keep running
        raise


if __name__ == "__main__":
    main()
