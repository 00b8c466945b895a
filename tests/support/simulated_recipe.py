"""A recipe in FLARE's simulator, apart from pytest as NumPy's sites replace Keras.

python simulated_recipe.py <folder> <site table> <initial body> <knobs, as JSON> <file>

Where it ran stands in the file then.
"""

import json
import sys
from pathlib import Path

from nvflare.recipe import SimEnv

from cxr_study.jobs.recipe import SurgicalAggregationRecipe
from numpy_site import NumpySite


def main(folder, table, initial_body, knobs, file):
    sites = list(json.loads(Path(table).read_text()))
    recipe = SurgicalAggregationRecipe(
        sites=sites,
        initial_body=initial_body,
        site=NumpySite("{SITE_NAME}", table),
        **json.loads(knobs),
    )
    run = recipe.execute(SimEnv(clients=sites, workspace_root=folder))
    Path(file).write_text(str(run.get_result()))


if __name__ == "__main__":
    main(*sys.argv[1:])
