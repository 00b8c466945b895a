"""What a DICOM file says of itself, and what of that speaks against it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pydicom
from pydicom import uid as uids

from cxr_study.data.labels.label_table import FRONTAL

MODALITIES = ("CR", "DX", "DR", "RG", "CXR")
"""Of radiographs (PS3.3, C.7.3.1.1.1, and what is found besides)."""

_CHEST = ("CHEST", "THORAX", "LUNG")  # one of them is in the name of the body part
_LATERAL = r"(?<![A-Z])(LAT|LATERAL|LL|RL|PROFIL|SEITLICH)(?![A-Z])"
_NOT_ALONE = r"(?<![A-Z])(PA|AP|P\.A|A\.P|2|TWO)(?![A-Z])|DECUB"  # lying, seen from the front
_FORBIDDEN = {"MONOCHROME1": "IDENTITY", "MONOCHROME2": "INVERSE"}  # shapes of presentation LUTs


class DicomError(ValueError):
    """A DICOM file holds no single grey image, or one that cannot be decompressed here."""


@dataclass(frozen=True)
class DicomHeader:
    """What a DICOM file says of itself.

    Attributes:
        view: View position, in capitals; LATERAL where it is blank and the view's code or, without
            one, the series' description names a lateral alone; "" where it is not said.
        contradictions: What tells that it is no radiograph of a chest, such as "modality CT", or
            none that can be shown as it is meant, such as "window width 0".
        width: Pixels; 0 where it is not said.
        height: The same.
    """

    view: str
    contradictions: tuple[str, ...]
    width: int
    height: int

    @property
    def is_frontal(self) -> bool:
        """Whether the view is frontal, or not said."""
        return not self.view or self.view in FRONTAL


def header_of(file: pydicom.Dataset) -> DicomHeader:
    """Look at a data set, with or without its pixels.

    Raises:
        DicomError: An element cannot be read.
    """
    view = _view(file)
    size = (int(value(file, keyword) or 0) for keyword in ("Columns", "Rows"))
    return DicomHeader(view, tuple(_contradictions(file, view)), *size)


def value(file: pydicom.Dataset, keyword: str) -> Any:
    """The value of an element; None: there is none.

    Raises:
        DicomError: It cannot be read.
    """
    try:
        return file.get(keyword)
    except Exception as error:
        raise DicomError(
            f"the DICOM file is damaged: {keyword} cannot be read: {text(error)}"
        ) from error


def window_width(file: pydicom.Dataset) -> float | None:
    """Width of the first window; None: there is none, or none with a centre."""
    centre, width = value(file, "WindowCenter"), value(file, "WindowWidth")
    return None if centre is None or width is None else float(np.ravel(width)[0])


def misplaced(file: pydicom.Dataset) -> bool:
    """Whether the stored bits cannot end at the high bit, which they then do not."""
    high, stored = value(file, "HighBit"), value(file, "BitsStored") or 0
    return high is not None and not stored - 1 <= high < (value(file, "BitsAllocated") or 16)


def text(error: Exception) -> str:
    """What an error says, on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _contradictions(file: pydicom.Dataset, view: str) -> Iterator[str]:
    modality, part = _capitals(file, "Modality"), _capitals(file, "BodyPartExamined")
    if modality and modality not in MODALITIES:
        yield f"modality {modality}"
    if part and not any(word in part for word in _CHEST):
        yield f"body part {part}"
    kind = uids.UID(str(value(file, "SOPClassUID") or "")).name.upper()
    if "FOR PROCESSING" in (_capitals(file, "PresentationIntentType"), kind.rpartition(" - ")[2]):
        yield "for processing, not for presentation"
    across, down = (*(value(file, "PatientOrientation") or ("", "")), "")[:2]
    usual = ("L",) if view in FRONTAL else ("L", "A", "P")
    if (across or down) and not (across.startswith(usual) and down.startswith("F")):
        yield f"patient orientation {across}\\{down}"
    colours = _capitals(file, "PhotometricInterpretation")
    if (shape := _capitals(file, "PresentationLUTShape")) == _FORBIDDEN.get(colours):
        yield f"presentation LUT shape {shape} in {colours}"
    if misplaced(file):
        yield f"high bit {value(file, 'HighBit')} with {value(file, 'BitsStored')} bits stored"
    if value(file, "RescaleSlope") == 0:
        yield "rescale slope 0"
    width = window_width(file)
    if width is not None and width < 1 and not value(file, "VOILUTSequence"):
        yield f"window width {width:g}"


def _view(file: pydicom.Dataset) -> str:
    if said := _capitals(file, "ViewPosition"):
        return said
    codes = [_capitals(code, "CodeMeaning") for code in value(file, "ViewCodeSequence") or ()]
    for named in codes or [_capitals(file, "SeriesDescription")]:
        if re.search(_LATERAL, named) and not re.search(_NOT_ALONE, named):
            return "LATERAL"
    return ""


def _capitals(file: pydicom.Dataset, keyword: str) -> str:
    return str(value(file, keyword) or "").strip().upper()
