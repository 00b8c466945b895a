"""Does every network of keras.applications say here what it says in Keras, and in each export?

Usage: python tests/benchmarks/keras_networks.py [--backbones vgg16 resnet50]

For each name: weights without a value of a new network's, read as a file and as ImageNet's; the
distance of a site's features from Keras's when predicting, in standard deviations; that of a
training step's loss, relatively; and which of package, SavedModel and ONNX run and say the same.
The comparison and each export have a process of their own, so that the memory is that of the
largest; a name adds a line to `keras_networks.csv`. Names that have one are left out, so that the
table can be made in pieces. "ended": the export's process was killed, or took half an hour.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import options

TABLE = Path(__file__).with_suffix(".csv")
FORMATS = ("package", "savedmodel", "onnx")
COLUMNS = f"network,file,imagenet,training,{','.join(FORMATS)},seconds"
SECONDS = 1800  # for one process
ANSWER, MODEL = "answer.txt", "model.npz"


def compare(name, folder):
    """The three distances; the model is left in the folder."""
    from keras_features import differences, downloading, write_weights
    from surgical_aggregation.checkpoints.checkpoint import save

    weights = str(folder / "body.weights.h5")
    own = write_weights(name, weights)
    file, training, checkpoint = differences(name, weights, own, train=True)
    save(checkpoint, folder / MODEL)
    with downloading(weights):
        imagenet, *_ = differences(name, "imagenet", train=False)
    return ",".join(f"{number:.0e}" for number in (file, imagenet, training))


def export(to, folder):
    """Whether an export of the model that `compare` left is the same."""
    from cxr_study import load_model
    from keras_features import exported

    why = exported(load_model(folder / MODEL), folder, [to])[to]
    print(why, flush=True)
    return "refused" if why else "same"


def answer(work, given, folder):
    """What a function of this module says of an argument and a folder, in a process of its own."""
    output = folder / ANSWER
    output.unlink(missing_ok=True)
    command = [sys.executable, __file__, "--answer", work, given, str(folder)]
    try:
        subprocess.run(command, timeout=SECONDS, check=True)
    except subprocess.SubprocessError as error:
        print(f"{given}: {error}", flush=True)
    return output.read_text() if output.is_file() else ""


def main():
    from cxr_study.training.backbones import APPLICATIONS

    given = options(__doc__, backbones=sorted(APPLICATIONS))
    if not TABLE.exists():
        TABLE.write_text(COLUMNS + "\n")
    done = {row.split(",")[0] for row in TABLE.read_text().splitlines()}
    for name in given.backbones:
        if name in done:
            continue
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            if not (numbers := answer("compare", name, Path(folder))):
                continue
            output = [answer("export", to, Path(folder)) or "ended" for to in FORMATS]
        text = ",".join([name, numbers, *output, f"{time.monotonic() - began:.0f}"])
        with TABLE.open("a") as file:
            file.write(text + "\n")
        print(text, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answer"]:
        work, given, folder = sys.argv[2:]
        output = {"compare": compare, "export": export}[work](given, Path(folder))
        Path(folder, ANSWER).write_text(output)
    else:
        main()
