"""Color photographs of skin with a csv of findings: hospitals with a custom `Site` class.

    surgagg model init initial.npz --site skin_photos:SkinPhotos --arg site=north --arg folder=data
    python skin_photos.py data                  # train in FLARE's simulator
    surgagg report runs/skin/surgical           # AUROC per class and site, as an HTML report

A site's data are in data/<site>: findings.csv (photo, split, then a column per finding: 1, 0 or
empty) and the photographs. The findings differ between sites.
"""

import sys
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from nvflare.recipe import SimEnv

from cxr_study.data.images.image_store import check_limit, prepare
from cxr_study.jobs.job import Job
from cxr_study.jobs.recipe import JobRecipe
from cxr_study.training.backbones import normalisation
from surgical_aggregation.site.contract.site import Site

BACKBONE, SIDE = "small_densenet", 32  # or any network of keras.applications, at its size


class SkinPhotos(Site):
    """One hospital's photographs.

    FLARE recreates it at every site from its class and the attributes named like the constructor's
    arguments, so the constructor only stores them.
    """

    def __init__(self, site: str, folder: str):
        super().__init__()
        self.site = site
        self.folder = folder

    @cached_property
    def table(self):
        return pd.read_csv(Path(self.folder, self.site, "findings.csv"))

    @property
    def classes(self):
        return tuple(self.table.columns[2:])

    def model(self):
        from cxr_study.training.network import build

        return build(BACKBONE, len(self.classes), image_size=SIDE)

    def data(self, split, *, training=False, first_pass=0):
        from cxr_study.training.input_pipeline import dataset

        rows = self.table[self.table["split"] == split]
        folder = Path(self.folder, self.site)
        files = [str(folder / photo) for photo in rows["photo"]]
        photos = prepare(folder, rows["photo"], files, SIDE, channels=3)
        check_limit(photos, 0, str(folder))  # end if a photograph cannot be used
        return dataset(
            photos.pixels,
            rows[list(self.classes)].to_numpy(np.float32),
            rows=photos.index["row"].to_numpy(),
            batch_size=16,
            normalisation=normalisation(BACKBONE),
            shuffle_seed=0 if training else None,
            first_pass=first_pass,
        )


if __name__ == "__main__":
    sites = ["north", "south"]
    settings = {
        "initial_body": str(Path("initial.npz").absolute()),  # at the server
        "strategy": "fedavg",  # for random weights; fedbn+ needs a trained body
        "num_rounds": 3,
    }
    recipe = JobRecipe(
        Job.asked("surgical", sites=sites, settings=settings),
        site=SkinPhotos(
            "{SITE_NAME}", str(Path(sys.argv[1]).absolute())
        ),  # FLARE inserts each site's name
    )
    run = recipe.execute(SimEnv(clients=sites, workspace_root="runs/skin"))
    print(f"result  {run.get_result(clean_up=False)}")
