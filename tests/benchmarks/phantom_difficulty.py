"""How hard the phantom's findings are to see, and how much another site's pictures cost.

Trains the small DenseNet, from random weights and on complete labels, on the pooled sites and on
each site alone. Prints the mean AUROC over the 20 classes on both test splits: mean over the seeds
(each with its own phantom and initial weights) and a 95% t-interval. Takes ten minutes on two
cores.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from measure import options
from PIL import Image
from scipy.stats import sem, t
from sklearn.metrics import roc_auc_score

from cxr_study.data.labels.vocabulary import UNION_CLASSES
from cxr_study.phantom.writers.write_phantom import write_phantom
from surgical_aggregation.site.training.tensorflow_setup import configure

PATIENTS = {
    "nih": lambda name: str(int(name.split("_")[0])),
    "chexpert": lambda path: path.split("/")[2],
}
"""Site -> patient of an image."""

SIZE = 64
BATCH = 32


def load(root, site):
    """Pictures, true labels and splits of a site's frontal images."""
    table = pd.read_csv(root / "truth" / f"{site}.csv")
    table = table[~table["image"].str.contains("lateral")]
    split = pd.read_csv(root / "sites" / f"{site}_split.csv", comment="#", dtype=str)
    splits = table["image"].map(PATIENTS[site]).map(split.set_index("patient")["split"])
    images = root / ("nih/images" if site == "nih" else site)
    pictures = np.stack([np.asarray(Image.open(images / name)) for name in table["image"]])
    return pictures, table[list(UNION_CLASSES)].to_numpy(np.float32), splits.to_numpy()


def train(parts, epochs, seed):
    import keras

    from cxr_study.training.input_pipeline import dataset
    from cxr_study.training.network import build

    keras.utils.set_random_seed(seed)
    pictures = np.concatenate([x[split != "test"] for x, _, split in parts])
    labels = np.concatenate([y[split != "test"] for _, y, split in parts])
    data = dataset(
        pictures, labels, batch_size=BATCH, shuffle_seed=seed, augmentation="radiology", seed=seed
    )
    model = build("small_densenet", len(UNION_CLASSES), image_size=SIZE)
    rate = keras.optimizers.schedules.CosineDecay(2e-3, epochs * -(-len(labels) // BATCH))
    model.compile(keras.optimizers.Adam(rate), loss="binary_crossentropy")
    model.fit(data, epochs=epochs, shuffle=False, verbose=0)
    return model


def auroc(model, part):
    from cxr_study.training.input_pipeline import dataset

    pictures, labels, split = part
    test = split == "test"
    scores = model.predict(dataset(pictures[test], labels[test], batch_size=256), verbose=0)
    return roc_auc_score(labels[test], scores, average=None)


def aurocs(images, epochs, seed):
    """(trained on, tested on) -> AUROC per class, on a new phantom."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "phantom"
        write_phantom(root, images_per_site=images, size=SIZE, seed=seed, sites=tuple(PATIENTS))
        parts = {site: load(root, site) for site in PATIENTS}
    results = {}
    for name, sites in {"pooled": PATIENTS, **{site: (site,) for site in PATIENTS}}.items():
        model = train([parts[site] for site in sites], epochs, seed)
        results |= {(name, site): auroc(model, parts[site]) for site in PATIENTS}
    return results


def main():
    wanted = options(__doc__, images=2000, epochs=12, seeds=3)
    configure(threads=2, seed=0)
    runs = [aurocs(wanted.images, wanted.epochs, seed) for seed in range(wanted.seeds)]
    print("trained on  tested on   AUROC  95% interval")
    for trained_on, site in runs[0]:
        means = [run[trained_on, site].mean() for run in runs]
        centre = np.mean(means)
        low, high = t.interval(0.95, len(means) - 1, centre, sem(means))
        print(f"{trained_on:10}  {site:10}  {centre:.3f}  {low:.3f} to {high:.3f}")
    print("\nclass (pooled model)          nih  chexpert")
    for k, name in enumerate(UNION_CLASSES):
        by_site = (np.mean([run["pooled", site][k] for run in runs]) for site in PATIENTS)
        print(f"{name:27}  {'     '.join(f'{value:.3f}' for value in by_site)}")


if __name__ == "__main__":
    main()
