"""From a hospital's folder and csv to a site that can train.

Run its cells (# %%) one by one in an editor, or all: python own_data.py

It works in the current folder: klinik/ stands in for the hospital's own, and is drawn here.
"""

# %% A hospital's folder: images, and a csv in its own words. Yours is there already.
import shutil
import subprocess
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from cxr_study.data.labels.label_table import classes
from cxr_study.data.sites.site_data import load_images, load_labels
from cxr_study.data.sites.site_file import read_site_file


def surgagg(*words):
    """Type a command."""
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

# %% The site file, the split of the patients, the decoded images. What the headers do not say,
# options do; without them the command names all that is missing.
if not Path("sites/klinik.yaml").exists():
    columns = ("Bildname=image", "Patient-Nr=patient", "Strahlengang=view")
    words = ("ja=1", "nein=0")
    said = [part for column in columns for part in ("--column", column)]
    said += [part for word in words for part in ("--word", word)]
    surgagg("data", "site", "table", "klinik", "sites/klinik.yaml", *said)
print(Path("sites/klinik.yaml").read_text())

# %% "Pleuraerguss" is no class that others have: the command said so, and which one is meant. A
# line in the site file renames it.
text = Path("sites/klinik.yaml").read_text()
if "merges" not in text:
    Path("sites/klinik.yaml").write_text(f"{text}merges:\n  Pleural Effusion: [Pleuraerguss]\n")

# %% What trains: a table of labels, and grey squares.
labels = load_labels(read_site_file(Path("sites/klinik.yaml")))
images = load_images(labels, 64)
table = images.table
print(table.groupby("split")[classes(labels.table)].agg(["sum", "count"]).astype(int))
assert "Pleural Effusion" in table

# %% Look at some: what is wrong with data is often seen at once.
shown = table[table["split"] == "train"].head(8)
figure, axes = plt.subplots(2, 4, figsize=(8, 4.5))
for axis, (row, image) in zip(axes.flat, shown.iterrows(), strict=True):
    axis.imshow(images.pixels[images.rows[row]], cmap="gray", vmin=0, vmax=255)
    axis.set_title(", ".join(name for name in classes(labels.table) if image[name] == 1), size=7)
    axis.axis("off")
figure.savefig("own_data.png")
print("own_data.png")

# %% Next: what a stranger would ask of this data, as a report; then train with others.
surgagg("data", "audit", "sites/klinik.yaml", "--out", "audit")
