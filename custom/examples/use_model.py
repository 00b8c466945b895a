"""Predict with a trained model, and find thresholds for it.

Run its cells (# %%) one by one in an editor, or all: python use_model.py [<run or best.npz>
<folder of images>]; by default runs/example of run_and_results.py, and drawn images.
"""

# %% The model: a run's folder, or a checkpoint.
import subprocess
import sys
from pathlib import Path

import pandas as pd
from sklearn.metrics import roc_auc_score

from cxr_study import load_model

RUN, IMAGES = sys.argv[1:] or ("runs/example", "new/nih/images")

model = load_model(RUN)
print(f"{len(model.classes)} classes: {', '.join(model.classes)}")
for name, trained in model.facts.trained.items():
    print(name, "was trained by", ", ".join(trained.sites))

# %% Images: PNG, JPEG, DICOM; one row each. Images that cannot be read, or do not look like a
# frontal chest radiograph, are flagged.
if not Path(IMAGES).exists():
    command = "surgagg data phantom new --sites nih --images 200 --seed 9"  # not training images
    subprocess.run(command.split(), check=True)
table = model.predict(IMAGES)
print(table.head().round(3))
print(table["flags"].value_counts().head())

# %% The likeliest finding of each image, and the images to read first for one of them.
print(table[list(model.classes)].idxmax(axis=1).value_counts())
first = model.classes[0]
print(table.nlargest(5, first)[["image", first]])

# %% With labels: AUROC on your data. `surgagg model evaluate` also gives intervals by patient.
csv = next(Path(IMAGES).parent.glob("Data_Entry*.csv"), None)
if csv is not None:
    truth = pd.read_csv(csv).set_index("Image Index")["Finding Labels"].str.split("|")
    known = truth.loc[[Path(image).name for image in table["image"]]]
    for name in model.classes:
        labels = [name in found for found in known]
        if 0 < sum(labels) < len(labels):
            print(f"{name:24} {roc_auc_score(labels, table[name]):.3f}")

# %% A threshold for each class, at 90 % sensitivity on a site's validation split; predictions then
# have a column "<class> positive". Then heat maps of some images, as a page.
# surgagg model calibrate runs/example --phantom --sites nih --sensitivity 0.9
# surgagg predict runs/example new/nih/images --out predictions.csv --explain 3
