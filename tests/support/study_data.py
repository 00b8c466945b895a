"""Small data sets in the official layouts, and a data file of a study that names them."""

from pathlib import Path

import yaml

from cxr_study.phantom import write_phantom
from surgical_aggregation.checkpoint import save


def write(home, **knobs):
    """Write 150 images of each data set, 32 pixels, an initial body, and the data file.

    Returns:
        Path of the data file.
    """
    from cxr_study.model import build, initial_body

    home = Path(home)
    write_phantom(
        home / "phantom", images_per_site=150, size=32, sites=("nih", "chexpert", "mimic")
    )
    body = initial_body(build("small_densenet", 1, image_size=32), backbone="small_densenet")
    save(body, home / "body.npz")
    content = {
        "data": {
            "nih": "phantom/nih",
            "chexpert": "phantom/sites/chexpert.yaml",
            "mimic": "phantom/sites/mimic.yaml",
        },
        "initial_body": "body.npz",
        "knobs": {"image_size": 32, "warmup_epochs": 1, "num_rounds": 2, **knobs},
    }
    path = home / "small.yaml"
    path.write_text(yaml.safe_dump(content))
    return path
