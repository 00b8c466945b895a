"""From a hospital's folder and csv to a site that can train.

Run its cells (# %%) one by one in an editor, or all: python own_data.py

It works in the current folder. The folder klinik/ stands for the hospital's own; it is drawn here.
"""

# %% A hospital's folder: images, and a csv with its own headers and words. Use yours instead.
import shutil
import subprocess
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from cxr_study.data.labels.label_table import classes
from cxr_study.data.sites.site_data import load_images, load_labels
from cxr_study.data.sites.site_file import read_site_file


def surgagg(*words):
    """Run a surgagg command."""
    subprocess.run(["surgagg", *words], check=True)


if not Path("klinik").exists():
    surgagg("data", "phantom", "drawn", "--sites", "nih", "--images", "200")
    drawn = pd.read_csv(next(Path("drawn/nih").glob("*.csv")))
    findings = drawn["Finding Labels"].str.split("|")
    own = pd.DataFrame(
        {
            "Bildname": drawn["Image Index"],
            "Patient-Nr": drawn["Patient ID"],
            "Strahlengang": drawn["View Position"],
            "Pleuraerguss": [("ja" if "Effusion" in found else "nein") for found in findings],
            "Pneumothorax": [("ja" if "Pneumothorax" in found else "nein") for found in findings],
        }
    )
    shutil.copytree("drawn/nih/images", "klinik")
    own.to_csv("klinik/befunde.csv", sep=";", index=False)

# %% The site file, the split of the patients, the decoded images. Options give what the headers do
# not; without them the command lists everything that is missing.
if not Path("sites/klinik.yaml").exists():
    columns = ("Bildname=image", "Patient-Nr=patient", "Strahlengang=view")
    words = ("ja=1", "nein=0")
    options = [part for column in columns for part in ("--column", column)]
    options += [part for word in words for part in ("--word", word)]
    surgagg("data", "site", "table", "klinik", "sites/klinik.yaml", *options)
print(Path("sites/klinik.yaml").read_text())

# %% No other site has a class "Pleuraerguss"; the command warned and suggested the standard name.
# A line in the site file renames it.
text = Path("sites/klinik.yaml").read_text()
if "merges" not in text:
    Path("sites/klinik.yaml").write_text(f"{text}merges:\n  Pleural Effusion: [Pleuraerguss]\n")

# %% The training data: a table of labels, and square grey images.
labels = load_labels(read_site_file(Path("sites/klinik.yaml")))
images = load_images(labels, 64)
table = images.table
print(table.groupby("split")[classes(labels.table)].agg(["sum", "count"]).astype(int))
assert "Pleural Effusion" in table

# %% Plot some images: problems of the data are often visible.
shown = table[table["split"] == "train"].head(8)
figure, axes = plt.subplots(2, 4, figsize=(8, 4.5))
for axis, (row, image) in zip(axes.flat, shown.iterrows(), strict=True):
    axis.imshow(images.pixels[images.rows[row]], cmap="gray", vmin=0, vmax=255)
    axis.set_title(", ".join(name for name in classes(labels.table) if image[name] == 1), size=7)
    axis.axis("off")
figure.savefig("own_data.png")
print("own_data.png")

# %% Next: an audit report of this data; then train with other sites.
surgagg("data", "audit", "sites/klinik.yaml", "--out", "audit")
