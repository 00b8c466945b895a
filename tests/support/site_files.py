"""A site of three patients, one with a lateral picture, and its site file."""

import numpy as np
import yaml
from PIL import Image

COLUMNS = "image,patient,view,Mass,Edema,Left effusion,Right effusion\n"
ROWS = """a.png,1,PA,1,-1,0,1
b.png,2,AP,0,,0,0
c.png,2,lateral,1,0,0,0
d.png,3,PA,0,1,0,0
"""


def write_data(folder):
    """Write labels, images and split of a hospital's own table."""
    (folder / "images").mkdir()
    (folder / "labels.csv").write_text(COLUMNS + ROWS)
    (folder / "split.csv").write_text("patient,split\n1,train\n2,test\n3,train\n")
    for number, name in enumerate("abcd"):
        pixels = np.arange(16, dtype=np.uint8).reshape(4, 4) + number
        Image.fromarray(pixels).save(folder / f"images/{name}.png")


def write_site(folder, name="a", **keys):
    """Write a site file next to these data; None leaves a key out. Returns its path."""
    files = {"labels": "labels.csv", "images": "images", "split": "split.csv"}
    keys = {"dataset": "table", **files, "blank": "negative", **keys}
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({k: value for k, value in keys.items() if value is not None}))
    return path
