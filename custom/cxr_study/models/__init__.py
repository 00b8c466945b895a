"""A trained model in use: predicted with, calibrated, exported, given another one's classes."""

from typing import Literal

Format = Literal["keras", "savedmodel", "onnx"]
"""Of an exported model."""

OUTPUT = "probabilities"
"""Name of its output: float32 (images, classes), in the order of the facts' "classes"."""
