"""A model as a file for other programs: pixels in, probabilities by name out."""

from typing import Literal

Format = Literal["keras", "savedmodel", "onnx"]
"""Of an exported model; see `export_model.FORMATS`."""

OUTPUT = "probabilities"
"""Name of the output: float32 (images, classes), in the order of the facts' "classes"."""
