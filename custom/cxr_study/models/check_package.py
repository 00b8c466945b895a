"""Check that the model in this folder predicts the reference image as it did when packaged.

Needs only Python, Keras with TensorFlow, NumPy and Pillow:

    pip install keras tensorflow numpy pillow
    python check.py
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
from PIL import Image

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before TensorFlow starts
import keras

FOLDER = Path(__file__).parent


def main() -> None:
    """Print expected and predicted probabilities; exit with 1 if they differ."""
    expected = json.loads((FOLDER / "reference.json").read_text(encoding="utf-8"))
    model = keras.saving.load_model(FOLDER / "model.keras")
    file = FOLDER / expected["image"]
    image = np.load(file) if file.suffix == ".npy" else np.asarray(Image.open(file), np.float32)
    found = np.asarray(model.predict_on_batch(image[None])["probabilities"])[0]
    wanted = expected["probabilities"]
    for (name, probability), predicted in zip(wanted.items(), found, strict=True):
        print(f"{name:<30} expected {probability:.6f}  found {predicted:.6f}")
    worst = np.abs(found - np.array(list(wanted.values()))).max()
    good = worst <= expected["tolerance"]
    print(f"{'The same' if good else 'NOT the same'}: greatest difference {worst:.1e}")
    sys.exit(not good)


if __name__ == "__main__":
    main()
