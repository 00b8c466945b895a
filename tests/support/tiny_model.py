"""A trained model of a few weights, and images for it."""

import numpy as np
import pandas as pd
import yaml
from PIL import Image

CLASSES = ("Edema", "Hernia", "Mass")
SIZE = 32


def checkpoint(classes=CLASSES, seed=0, body_seed=0, hidden=0, **facts):
    """A global model whose head and batch normalisation differ with the seeds."""
    from cxr_study.training.network import Network, build
    from surgical_aggregation.checkpoints.checkpoint import Checkpoint
    from surgical_aggregation.site.contract.architecture import initial_body
    from surgical_aggregation.site.training.tensorflow_setup import import_quietly
    from surgical_aggregation.wire import variables as wire

    import_quietly()
    import keras

    keras.utils.set_random_seed(body_seed)
    network = Network("tiny_densenet", SIZE, hidden)
    model = build("tiny_densenet", 1, image_size=SIZE, hidden=hidden)
    body = initial_body(model, **network.facts())
    rng = np.random.default_rng(seed)
    features = model.get_layer("head").kernel.shape[0]

    def drawn(size, scale=1):
        return (scale * rng.normal(size=size)).astype(np.float32)

    columns = {name: (drawn(features, 3), drawn(1)) for name in classes}
    trained = {"sites": ["a"], "last_round": 1, "rounds": [[0, 1, ["a"]]]}
    trained = {name: dict(trained) for name in classes}
    manifest = {**body.manifest, "classes": trained, "round": 2, **facts}
    return Checkpoint(wire.join(body.variables, columns), manifest)


def saved(path, **how):
    """Write `checkpoint(**how)`; the path."""
    from surgical_aggregation.checkpoints.checkpoint import save

    save(checkpoint(**how), path)
    return path


def picture(path, size=(48, 40), seed=0, mode="L"):
    """Write a picture of noise on a gradient."""
    path.parent.mkdir(parents=True, exist_ok=True)
    width, height = size
    rng = np.random.default_rng(seed)
    shape = (height, width) if mode == "L" else (height, width, 3)
    pixels = np.linspace(0, 200, width)[None, :, None][..., 0 if mode == "L" else slice(None)]
    noisy = pixels + rng.integers(0, 56, shape)
    Image.fromarray(noisy.astype(np.uint8)).save(path)
    return path


def ill_or_not(folder, numbers, seed=0):
    """Write pictures of noise, every third with a bright diagonal; whether it has it."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    ill = [number % 3 == 0 for number in range(numbers)]
    for number, sick in enumerate(ill):
        pixels = rng.integers(0, 120, (36, 36)) + 120 * sick * np.eye(36, dtype=int)
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{number}.png")
    return np.array(ill, int)


def hospital(home, splits, folder="data", **classes):
    """Write the site file of a hospital, "a", a patient an image; the options that name it."""
    images = [f"{number}.png" for number in range(len(splits))]
    patients = list(range(len(splits)))
    table = pd.DataFrame({"image": images, "patient": patients, "view": "PA"})
    table = table.assign(**{name: np.array(labels, int) for name, labels in classes.items()})
    table.to_csv(home / "labels.csv", index=False)
    split = pd.DataFrame({"patient": patients, "split": splits})
    split.to_csv(home / "split.csv", index=False)
    files = {"dataset": "table", "labels": "labels.csv", "images": folder, "split": "split.csv"}
    (home / "a.yaml").write_text(yaml.safe_dump({**files, "bad_images": "100%"}))
    return "--site-files", home, "--sites", "a"
