"""Images that a person names, predicted: found, read, looked at, predicted, written."""

from typing import Literal

Method = Literal["temperature", "platt", "isotonic"]
"""Of calibration; see `calibration_file.Curve`."""
