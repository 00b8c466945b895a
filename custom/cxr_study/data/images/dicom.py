"""DICOM radiographs to 8-bit grey, as a viewer would first show them."""

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from struct import pack
from typing import Any

import numpy as np
import pydicom
from pydicom import uid as uids
from pydicom.encaps import generate_frames
from pydicom.pixels import apply_modality_lut, apply_voi_lut, get_decoder, pixel_array

from cxr_study.data.labels.label_table import FRONTAL

MODALITIES = ("CR", "DX", "DR", "RG", "CXR")
"""Of radiographs (PS3.3, C.7.3.1.1.1, and what is found besides)."""

_LOSSLESS = (uids.JPEGLossless, uids.JPEGLosslessSV1, *uids.JPEGLSTransferSyntaxes)
_DECODED_BY_EXTRA = (*_LOSSLESS, *uids.JPEGTransferSyntaxes, *uids.JPEG2000TransferSyntaxes)
_CHEST = ("CHEST", "THORAX", "LUNG")  # one of them is in the name of the body part
_FAR = 1e12  # beyond every value that a window could end at


class DicomError(ValueError):
    """A DICOM file holds no single grey image, or one that cannot be decompressed here."""


class MissingDecoderError(DicomError):
    """A DICOM file that could be decoded if one more package were installed."""


@dataclass(frozen=True)
class DicomHeader:
    """What a DICOM file says of itself.

    Attributes:
        view: View position, in capitals; "" where it is not said.
        contradictions: What tells that it is no radiograph of a chest, such as "modality CT".
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


def is_dicom(data: bytes) -> bool:
    """Whether these are bytes of a DICOM file (PS3.10, section 7.1), perhaps of a bare data set."""
    return data[128:132] == b"DICM" or _is_bare(data)


def is_dicom_file(path: Path) -> bool:
    """Whether a file is one of DICOM; one that cannot be read is none."""
    try:
        with path.open("rb") as file:
            return is_dicom(file.read(132))
    except OSError:
        return False


def read_header(path: Path) -> DicomHeader:
    """Look at a DICOM file without its pixels.

    Raises:
        DicomError: The file is damaged.
    """
    return _header(_of_pydicom(pydicom.dcmread, path, stop_before_pixels=True, force=True))


def grey(data: bytes) -> np.ndarray:
    """Decode a DICOM radiograph, see `decode`, to its grey levels."""
    return decode(data)[0]


def decode(data: bytes) -> tuple[np.ndarray, DicomHeader]:
    """Decode a DICOM radiograph with one grey frame of at most 16 bits.

    Stored values go through the modality LUT or rescale, then through the first VOI LUT or, without
    one, the first window: its ends become black and white. A file with neither is stretched from
    its least to its greatest value. MONOCHROME1 is inverted, so that air is dark. Padding is black
    and does not count for the range.

    Returns:
        uint8 array of shape (rows, columns), and what the file says of itself.

    Raises:
        DicomError: The file holds no image, or one in colour, with several frames or more than 16
            bits; nothing decodes its transfer syntax; it is damaged or cut off.
        MissingDecoderError: What decodes its transfer syntax is not installed.
    """
    file = _of_pydicom(pydicom.dcmread, BytesIO(data), force=True)
    _check(file)
    return _of_pydicom(_grey, file), _header(file)


def _is_bare(data: bytes) -> bool:
    """Whether the bytes begin with an element of group 2 or 8 of a data set."""
    if data[:1] == b"\x00":  # big endian
        return data[1:2] in (b"\x02", b"\x08") and data[4:6].isalpha() and data[4:6].isupper()
    if data[:2] not in (b"\x02\x00", b"\x08\x00") or len(data) < 8:
        return False
    is_explicit = data[4:6].isalpha() and data[4:6].isupper()
    return is_explicit or int.from_bytes(data[4:8], "little") <= 64


def _of_pydicom(work: Callable[..., Any], *values: Any, **options: Any) -> Any:
    """Do what pydicom does, whose errors are of any kind."""
    try:
        return work(*values, **options)
    except (DicomError, MemoryError, OSError):
        raise
    except Exception as error:
        how = "cut off" if _text(error).startswith("End of file") else "damaged"
        raise DicomError(f"the DICOM file is {how}: {_text(error)}") from error


def _value(file: pydicom.Dataset, keyword: str) -> Any:
    try:
        return file.get(keyword)
    except Exception as error:
        text = f"{keyword} cannot be read: {_text(error)}"
        raise DicomError(f"the DICOM file is damaged: {text}") from error


def _text(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _header(file: pydicom.Dataset) -> DicomHeader:
    modality, view, part = (
        str(_value(file, keyword) or "").strip().upper()
        for keyword in ("Modality", "ViewPosition", "BodyPartExamined")
    )
    found = []
    if modality and modality not in MODALITIES:
        found.append(f"modality {modality}")
    if part and not any(word in part for word in _CHEST):
        found.append(f"body part {part}")
    return DicomHeader(
        view, tuple(found), int(_value(file, "Columns") or 0), int(_value(file, "Rows") or 0)
    )


def _check(file: pydicom.FileDataset) -> None:
    if "PixelData" not in file:
        raise DicomError(_without_image(file))
    frames = str(_value(file, "NumberOfFrames") or "1")
    colours = _value(file, "PhotometricInterpretation")
    bits = _value(file, "BitsAllocated")
    if frames != "1":
        raise DicomError(f"needs one frame; has {frames}")
    if colours not in ("MONOCHROME1", "MONOCHROME2"):
        has = colours or "none"
        raise DicomError(f"needs photometric interpretation MONOCHROME1 or 2; has {has}")
    if not bits or bits > 16:
        raise DicomError(f"needs at most 16 bits per pixel; has {bits}")
    if not file.file_meta.get("TransferSyntaxUID"):
        implicit, little = file.original_encoding
        plain = uids.ImplicitVRLittleEndian if implicit else uids.ExplicitVRLittleEndian
        file.file_meta.TransferSyntaxUID = plain if little else uids.ExplicitVRBigEndian
    syntax = file.file_meta.TransferSyntaxUID
    if syntax in _DECODED_BY_EXTRA and not get_decoder(syntax).is_available:
        raise MissingDecoderError(
            f"{syntax.name} ({syntax}) needs a decoder: pip install 'surgical-aggregation[dicom]'"
        )


def _without_image(file: pydicom.FileDataset) -> str:
    """Say what a DICOM file without pixels is."""
    uid = _value(file, "SOPClassUID") or file.file_meta.get("MediaStorageSOPClassUID")
    kind = uids.UID(uid).name if uid else "of unknown kind"
    if "Image Storage" in kind:
        return f"the DICOM file ({kind}) has no pixels; is it cut off?"
    modality = _value(file, "Modality")
    return f"the DICOM file holds no image: {kind}" + (f", modality {modality}" if modality else "")


def _stored(file: pydicom.FileDataset) -> np.ndarray:
    """Values as stored in the file."""
    syntax = file.file_meta.TransferSyntaxUID
    if syntax in _LOSSLESS:
        _check_jpeg(next(generate_frames(file.PixelData, number_of_frames=1)), file)
    # What Pillow can decode is the same wherever other decoders are installed.
    plugin = "pillow" if "pillow" in get_decoder(syntax).available_plugins else ""
    stored: np.ndarray = pixel_array(file, decoding_plugin=plugin)
    if stored.dtype.kind == "i" and syntax in uids.JPEGLSTransferSyntaxes:
        spare = 8 * stored.itemsize - file.BitsStored
        stored = stored << spare >> spare  # the sign is the highest stored bit
    return stored


def _check_jpeg(frame: bytes, file: pydicom.FileDataset) -> None:
    """Refuse a JPEG with a damaged header, at which gdcm would end the process."""
    segments, at = {}, 2
    while frame[at] == 0xFF and (marker := frame[at + 1]) != 0xDA:  # start of scan
        length = int.from_bytes(frame[at + 2 : at + 4], "big")
        segments[marker] = frame[at + 4 : at + 2 + length]
        at += 2 + length
    codes = segments.get(0xC4) or 0xF7 in segments  # JPEG-LS has none
    start = next((segments[each] for each in (0xC0, 0xC1, 0xC3, 0xF7) if each in segments), b"")
    if not codes or start[:1] > b"\x10" or start[1:5] != pack(">HH", file.Rows, file.Columns):
        raise DicomError("the JPEG's header is damaged")


def _grey(file: pydicom.FileDataset) -> np.ndarray:
    try:
        stored = _stored(file)
    except Exception as error:
        name = file.file_meta.TransferSyntaxUID.name
        raise DicomError(f"its pixels cannot be decoded ({name}): {_text(error)}") from error
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
