"""DICOM radiographs to 8-bit grey, as a viewer would first show them."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pydicom
from pydicom.pixels import apply_modality_lut, apply_voi_lut, get_decoder

_FAR = 1e12  # beyond every value that a window could end at


class DicomError(ValueError):
    """A DICOM file holds no single grey image, or one that cannot be decompressed here."""


def is_dicom(data: bytes) -> bool:
    """Whether these are the bytes of a DICOM file (DICOM PS3.10, section 7.1)."""
    return data[128:132] == b"DICM"


def is_dicom_file(path: Path) -> bool:
    """Whether a file is one of DICOM; one that cannot be read is none."""
    try:
        with path.open("rb") as file:
            return is_dicom(file.read(132))
    except OSError:
        return False


def grey(data: bytes) -> np.ndarray:
    """Decode a DICOM radiograph with one grey frame of at most 16 bits.

    Stored values go through the modality LUT or rescale, then through the first VOI LUT or, without
    one, the first window: its ends become black and white. A file with neither is stretched from
    its least to its greatest value. MONOCHROME1 is inverted, so that air is dark. Padding is black
    and does not count for the range.

    Returns:
        uint8 array of shape (rows, columns).

    Raises:
        DicomError: The image is in colour, has several frames or more than 16 bits, or nothing here
            decodes its transfer syntax. What pydicom raises for a corrupt file passes through.
    """
    file = pydicom.dcmread(BytesIO(data))
    _check(file)
    stored = file.pixel_array
    codes = stored.view(f"u{stored.itemsize}")
    # Grey depends on the stored value alone, so it is computed once for each possible value.
    values = np.arange(256**stored.itemsize, dtype=codes.dtype).view(stored.dtype).astype(np.int64)
    padding = _padding(file, values)
    present = (np.bincount(codes.ravel(), minlength=len(values)) > 0) & ~padding
    light = _light(file, values, present)
    if file.PhotometricInterpretation == "MONOCHROME1":
        light = 1 - light
    light[padding] = 0
    return np.rint(255 * light).astype(np.uint8)[codes]


def _check(file: pydicom.FileDataset) -> None:
    frames, colours = int(file.get("NumberOfFrames") or 1), file.PhotometricInterpretation
    if frames != 1:
        raise DicomError(f"needs one frame; has {frames}")
    if colours not in ("MONOCHROME1", "MONOCHROME2"):
        raise DicomError(f"needs photometric interpretation MONOCHROME1 or 2; has {colours}")
    if file.BitsAllocated > 16:
        raise DicomError(f"needs at most 16 bits per pixel; has {file.BitsAllocated}")
    syntax = file.file_meta.TransferSyntaxUID
    try:
        decoder = get_decoder(syntax)
    except NotImplementedError:
        raise DicomError(f"transfer syntax {syntax.name} ({syntax}) is not supported") from None
    if not decoder.is_available:
        raise DicomError(
            f"transfer syntax {syntax.name} ({syntax}) needs a decoder that is not installed: "
            + "; or ".join(decoder.missing_dependencies)
        )


def _padding(file: pydicom.FileDataset, values: np.ndarray) -> np.ndarray:
    """Which stored values stand for no image at all."""
    one = file.get("PixelPaddingValue")
    if one is None:
        return np.zeros(values.shape, bool)
    other = file.get("PixelPaddingRangeLimit", one)
    return (values >= min(one, other)) & (values <= max(one, other))


def _light(file: pydicom.FileDataset, values: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Brightness of each stored value, 0 to 1, before any inversion."""
    for item in [*(file.get("ModalityLUTSequence") or []), *(file.get("VOILUTSequence") or [])]:
        item.LUTDescriptor = [*item.LUTDescriptor[:2], 16]  # pydicom has other depths wrong
    shown = apply_modality_lut(values, file).astype(float)
    ends = np.sort(shown[present])
    if file.get("VOILUTSequence"):
        entries, first, _ = file.VOILUTSequence[0].LUTDescriptor
        domain = np.arange(first, first + (entries or 2**16))
        inside = np.rint(shown).astype(int).clip(domain[0], domain[-1])
        shown = apply_voi_lut(inside, file).astype(float)
        ends = np.sort(apply_voi_lut(domain, file).astype(float))
    elif file.get("WindowCenter") is not None and file.get("WindowWidth") is not None:
        with np.errstate(over="ignore"):  # at the far ends of a sigmoid
            shown = apply_voi_lut(np.append(shown, (-_FAR, _FAR)), file)
        shown, ends = shown[:-2], shown[-2:]
    if not ends.size or ends[0] == ends[-1]:
        return np.zeros(values.shape)
    return ((shown - ends[0]) / (ends[-1] - ends[0])).clip(0, 1)
