"""Use of a trained model: prediction, calibration, export, import of another model's classes."""

from typing import Literal

Format = Literal["keras", "savedmodel", "onnx"]
"""Format of an exported model."""

OUTPUT = "probabilities"
"""Name of an exported model's output: float32 (images, classes), in the metadata's order."""
