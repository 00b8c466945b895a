"""Runs an exported model with its format's runtime alone, as a program of its own.

Usage: exported_runtime.py FORMAT MODEL IMAGES.npz PROBABILITIES.npz [uint8]

IMAGES has uint8 arrays (n, height, width), each of one size; PROBABILITIES gets float32 arrays of
the same names, "classes", and the seconds that all took, from the second time on.
"""

import json
import sys
import time
import zipfile
from pathlib import Path

import numpy as np

NEEDED = {"keras": {"keras", "tensorflow"}, "onnx": {"onnxruntime"}}
NEEDED["savedmodel"] = NEEDED["keras"]  # TensorFlow imports Keras
KNOWN = {"keras", "tensorflow", "onnxruntime", "onnx", "tf2onnx"}
FACTS = "surgical_aggregation.json"


def keras_model(path):
    import keras

    with zipfile.ZipFile(path) as archive:
        facts = archive.read(FACTS)
    model = keras.saving.load_model(path)
    assert not model.compiled
    return facts, lambda pixels: model.predict_on_batch(pixels)["probabilities"]


def savedmodel(path):
    import tensorflow as tf

    facts = Path(path, "assets.extra", FACTS).read_bytes()
    loaded = tf.saved_model.load(path)

    def run(pixels):
        name = "serving_default" if pixels.dtype == np.float32 else "serve_uint8"
        return loaded.signatures[name](pixels=tf.constant(pixels))["probabilities"].numpy()

    return facts, run


def onnx(path):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    (pixels,) = session.get_inputs()
    facts = session.get_modelmeta().custom_metadata_map[FACTS]
    return facts, lambda images: session.run(["probabilities"], {pixels.name: images})[0]


def main(to, path, images, out, dtype="float32"):
    for name in {"cxr_study", "surgical_aggregation", *KNOWN} - NEEDED[to]:
        sys.modules[name] = None  # so its import fails
    functions = {"keras": keras_model, "savedmodel": savedmodel, "onnx": onnx}
    facts, run = functions[to](path)
    with np.load(images) as arrays:
        pixels = {name: arrays[name] for name in arrays}
    found = {name: run(values.astype(dtype)) for name, values in pixels.items()}
    began = time.perf_counter()
    for values in pixels.values():
        run(values.astype(dtype))
    found["seconds"] = np.array(time.perf_counter() - began)
    np.savez(out, classes=np.array(json.loads(facts)["classes"]), **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
