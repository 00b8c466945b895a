"""Small data sets in the official layouts, and a data file of a study that names them."""

import numpy as np
import yaml

from body_statistics import with_statistics
from cxr_phantom.writers.write_phantom import write_phantom
from surgical_aggregation.checkpoints.checkpoint import Checkpoint, digest, save

SITES = ("nih", "chexpert", "mimic")
SETTINGS = {"backbone": "tiny_densenet", "image_size": 32, "warmup_epochs": 1, "num_rounds": 2}


def write(home, initial_body, **settings):
    """Write 150 images of each data set, 32 pixels, what `initial_body` makes, and the data file.

    Returns the data file; `settings` stand in it.
    """
    write_phantom(home / "phantom", images_per_site=150, size=32, sites=SITES)
    save(initial_body(), home / "body.npz")
    data = {site: f"phantom/sites/{site}.yaml" for site in SITES} | {"nih": "phantom/nih"}
    content = {"data": data, "initial_body": "body.npz", "settings": {**SETTINGS, **settings}}
    path = home / "small.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def network():
    """An initial body to train on."""
    from cxr_study.training.network import build
    from surgical_aggregation.site.contract.architecture import initial_body

    made = initial_body(build("tiny_densenet", 1, image_size=32), backbone="tiny_densenet")
    return with_statistics(made)


def stand_in(value=0.0):
    """A stand-in for tests that train nothing; needs no Keras."""
    body = {"conv/kernel": np.full(2, value, np.float32)}
    facts = {"backbone": "tiny_densenet", "image_size": 32, "hidden": 0, "head_features": 2}
    return Checkpoint(body, {**facts, "initial_body_sha256": digest(body)})
