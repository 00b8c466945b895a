"""Does every network of keras.applications say here what it says in Keras, and in each export?

Usage: python tests/benchmarks/keras_networks.py [--backbones vgg16 resnet50] [--exports 0]

For each name: weights without a value of a new network's, read as a file and as ImageNet's; the
distance of a site's features from Keras's when predicting, in standard deviations; that of a
training step's loss, relatively; and which of package, SavedModel and ONNX run and say the same.
Every name runs in a process of its own and adds a line to `keras_networks.csv`; names that have one
are left out, so that the table can be made in pieces.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import options

TABLE = Path(__file__).with_suffix(".csv")
COLUMNS = "network,file,imagenet,training,package,savedmodel,onnx,seconds"
SECONDS = 1800  # for one name


def line(name, exports):
    from keras_features import differences, downloading, exported, loaded, write_weights

    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        weights = str(Path(folder, "body.weights.h5"))
        own = write_weights(name, weights)
        file, training, checkpoint = differences(name, weights, own, train=True)
        with downloading(weights):
            imagenet, *_ = differences(name, "imagenet", train=False)
        said = dict.fromkeys(("package", "savedmodel", "onnx"), "not run")
        if exports:
            model = loaded(checkpoint, Path(folder, "model.npz"))
            found = exported(model, Path(folder))
            said = {to: "refused" if why else "same" for to, why in found.items()}
            print(*filter(None, found.values()), sep="\n", flush=True)
    numbers = (f"{number:.0e}" for number in (file, imagenet, training))
    return ",".join([name, *numbers, *said.values(), f"{time.monotonic() - began:.0f}"])


def main():
    from cxr_study.training.backbones import APPLICATIONS

    given = options(__doc__, backbones=sorted(APPLICATIONS), exports=1)
    if not TABLE.exists():
        TABLE.write_text(COLUMNS + "\n")
    done = {row.split(",")[0] for row in TABLE.read_text().splitlines()}
    for name in given.backbones:
        if name in done:
            continue
        program = f"import keras_networks; keras_networks.one({name!r}, {given.exports})"
        command = [sys.executable, "-c", program]
        try:
            subprocess.run(command, cwd=TABLE.parent, timeout=SECONDS, check=True)
        except subprocess.SubprocessError as error:
            print(f"{name}: {error}", flush=True)


def one(name, exports):
    text = line(name, exports)
    with TABLE.open("a") as file:
        file.write(text + "\n")
    print(text, flush=True)


if __name__ == "__main__":
    main()
