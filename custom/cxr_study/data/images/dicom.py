"""Decode DICOM radiographs to 8-bit grey as a viewer shows them first, and check their headers.

References such as PS3.10 are parts of the DICOM standard, https://www.dicomstandard.org/current.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from struct import pack
from typing import Any

import numpy as np
import pydicom
from pydicom import DataElement
from pydicom import uid as uids
from pydicom.config import IGNORE
from pydicom.encaps import generate_frames
from pydicom.pixels.decoders.base import get_decoder
from pydicom.pixels.processing import apply_modality_lut, apply_voi_lut
from pydicom.pixels.utils import pixel_array

from cxr_study.data.labels.label_table import FRONTAL

MODALITIES = ("CR", "DX", "DR", "RG", "CXR")
"""Modalities of radiographs: CR and DX of PS3.3, C.7.3.1.1.1, and others found in practice."""

_CHEST = ("CHEST", "THORAX", "LUNG")  # the name of the body part contains one of them
_LATERAL = r"(?<![A-Z])(LAT|LATERAL|LL|RL|PROFIL|SEITLICH)(?![A-Z])"
_OTHER_VIEW = r"(?<![A-Z])(PA|AP|P\.A|A\.P|2|TWO)(?![A-Z])|DECUB"  # decubitus: lying, frontal
_FORBIDDEN = {"MONOCHROME1": "IDENTITY", "MONOCHROME2": "INVERSE"}  # shapes of presentation LUTs


class DicomError(ValueError):
    """A DICOM file does not contain exactly one grey image, or it cannot be decoded."""


@dataclass(frozen=True)
class DicomHeader:
    """Facts from the header of a DICOM file.

    Attributes:
        view: View position in capitals, such as PA, AP or LL. If it is blank: LATERAL where the
            view code or, without one, the series description names a lateral view and no other;
            else "".
        contradictions: Signs that it is not a chest radiograph, such as "modality CT", or that it
            cannot be shown as intended, such as "window width 0".
        width: Columns, pixels; 0 if not given.
        height: Rows, pixels; 0 if not given.
    """

    view: str
    contradictions: tuple[str, ...]
    width: int
    height: int

    @property
    def is_frontal(self) -> bool:
        """Whether the view is frontal or unknown."""
        return not self.view or self.view in FRONTAL


def header_of(file: pydicom.Dataset) -> DicomHeader:
    """Collect the facts of a header.

    Args:
        file: A data set, with or without its pixels.

    Raises:
        DicomError: An element cannot be read.
    """
    view = _view(file)
    size = (int(read_value(file, keyword) or 0) for keyword in ("Columns", "Rows"))
    return DicomHeader(view, tuple(_contradictions(file, view)), *size)


def read_value(file: pydicom.Dataset, keyword: str) -> Any:
    """Value of an element; None if the file does not have it.

    Args:
        file: A data set.
        keyword: Of the element, such as "Modality" (PS3.6).

    Raises:
        DicomError: The element cannot be read.
    """
    try:
        return file.get(keyword)
    except Exception as error:
        raise DicomError(
            f"the DICOM file is damaged: {keyword} cannot be read: {error_text(error)}"
        ) from error


def window_width(file: pydicom.Dataset) -> float | None:
    """Width of the first window; None if there is no window with centre and width."""
    centre, width = read_value(file, "WindowCenter"), read_value(file, "WindowWidth")
    return None if centre is None or width is None else float(np.ravel(width)[0])


def has_misplaced_high_bit(file: pydicom.Dataset) -> bool:
    """Whether the header's high bit is impossible for its number of stored bits.

    It must be at least bits stored - 1, and less than bits allocated (PS3.5, section 8.1.1). If it
    is not, decoding assumes bits stored - 1.
    """
    high, stored = read_value(file, "HighBit"), read_value(file, "BitsStored") or 0
    return high is not None and not stored - 1 <= high < (read_value(file, "BitsAllocated") or 16)


def error_text(error: Exception) -> str:
    """Message of an error on one line; the name of its type if it has none."""
    return " ".join(str(error).split()) or type(error).__name__


def _contradictions(file: pydicom.Dataset, view: str) -> Iterator[str]:
    """See `DicomHeader.contradictions`."""
    modality, part = _capitals(file, "Modality"), _capitals(file, "BodyPartExamined")
    if modality and modality not in MODALITIES:
        yield f"modality {modality}"
    if part and not any(word in part for word in _CHEST):
        yield f"body part {part}"
    kind = uids.UID(str(read_value(file, "SOPClassUID") or "")).name.upper()
    if "FOR PROCESSING" in (_capitals(file, "PresentationIntentType"), kind.rpartition(" - ")[2]):
        yield "for processing, not for presentation"
    across, down = (*(read_value(file, "PatientOrientation") or ("", "")), "")[:2]
    usual = ("L",) if view in FRONTAL else ("L", "A", "P")
    if (across or down) and not (across.startswith(usual) and down.startswith("F")):
        yield f"patient orientation {across}\\{down}"
    colours = _capitals(file, "PhotometricInterpretation")
    if (shape := _capitals(file, "PresentationLUTShape")) == _FORBIDDEN.get(colours):
        yield f"presentation LUT shape {shape} in {colours}"
    if has_misplaced_high_bit(file):
        high, bits = read_value(file, "HighBit"), read_value(file, "BitsStored")
        yield f"high bit {high} with {bits} bits stored"
    if read_value(file, "RescaleSlope") == 0:
        yield "rescale slope 0"
    width = window_width(file)
    if width is not None and width < 1 and not read_value(file, "VOILUTSequence"):
        yield f"window width {width:g}"


def _view(file: pydicom.Dataset) -> str:
    """See `DicomHeader.view`."""
    if position := _capitals(file, "ViewPosition"):
        return position
    codes = [_capitals(code, "CodeMeaning") for code in read_value(file, "ViewCodeSequence") or ()]
    for named in codes or [_capitals(file, "SeriesDescription")]:
        if re.search(_LATERAL, named) and not re.search(_OTHER_VIEW, named):
            return "LATERAL"
    return ""


def _capitals(file: pydicom.Dataset, keyword: str) -> str:
    return str(read_value(file, keyword) or "").strip().upper()


_LOSSLESS = (uids.JPEGLossless, uids.JPEGLosslessSV1, *uids.JPEGLSTransferSyntaxes)
_DECODED_BY_EXTRA = (*_LOSSLESS, *uids.JPEGTransferSyntaxes, *uids.JPEG2000TransferSyntaxes)
_FAR = 1e12  # beyond the ends of every window


class MissingDecoderError(DicomError):
    """A DICOM file needs a decoder that is not installed; the message names the extra."""


def is_dicom(data: bytes) -> bool:
    """Whether bytes are the beginning of a DICOM file (PS3.10, section 7.1).

    Bare data sets, without preamble and "DICM", count as well.

    Args:
        data: At least the first 132 bytes of the file.
    """
    return data[128:132] == b"DICM" or _is_bare(data)


def is_dicom_file(path: Path) -> bool:
    """Whether a file is a DICOM file; False if it cannot be read."""
    try:
        with path.open("rb") as file:
            return is_dicom(file.read(132))
    except OSError:
        return False


def read_header(path: Path) -> DicomHeader:
    """Read the header of a DICOM file, without its pixels.

    Raises:
        DicomError: The file is damaged.
        OSError: The file cannot be opened.
    """
    file = _of_pydicom(pydicom.dcmread, path, stop_before_pixels=True, force=True)
    return _of_pydicom(header_of, file)


def read_number(path: Path, keyword: str) -> tuple[str, str]:
    """Read the number that identifies an image, and its view.

    Args:
        path: The file.
        keyword: Element with the number, such as "AccessionNumber" (PS3.6).

    Returns:
        The number as text, and the view, see `DicomHeader`.

    Raises:
        DicomError: The file is not DICOM, has no image or no such number, or is damaged.
    """
    if not is_dicom_file(path):
        raise DicomError("not a DICOM file")
    file = _of_pydicom(pydicom.dcmread, path, stop_before_pixels=True, force=True)
    number = str(read_value(file, keyword) or "").strip()
    if not number or not read_value(file, "Rows"):
        raise DicomError(f"no image, or no {keyword}")
    return number, _of_pydicom(header_of, file).view


def decode(data: bytes) -> tuple[np.ndarray, DicomHeader]:
    """Decode a DICOM radiograph with one grey frame of at most 16 bits.

    The grey pipeline is that of PS3.4, annex N.2: stored values go through the modality LUT or
    rescale, then through the first VOI LUT or, without one, through the first window, if it is at
    least one value wide; the ends of the window become black and white. Without either, values are
    stretched from the least to the greatest. MONOCHROME1 is inverted, so that air is dark. Padding
    is black and is left out of the range.

    Args:
        data: Content of the file.

    Returns:
        uint8 array of shape (rows, columns), and the header; its `contradictions` include signs
        found in the pixels.

    Raises:
        DicomError: The file has no image, or one in colour, with several frames or more than 16
            bits; its transfer syntax is not supported; it is damaged or cut off.
        MissingDecoderError: The decoder of its transfer syntax is not installed.
    """
    file = _of_pydicom(pydicom.dcmread, BytesIO(data), force=True)
    _check(file)
    header = _of_pydicom(header_of, file)
    pixels, notes = _of_pydicom(_grey, file)
    return pixels, replace(header, contradictions=(*header.contradictions, *notes))


def _is_bare(data: bytes) -> bool:
    """Whether bytes begin with an element of group 2 or 8, as a bare data set does."""
    if data[:1] == b"\x00":  # big endian
        return data[1:2] in (b"\x02", b"\x08") and data[4:6].isalpha() and data[4:6].isupper()
    if data[:2] not in (b"\x02\x00", b"\x08\x00") or len(data) < 8:
        return False
    is_explicit = data[4:6].isalpha() and data[4:6].isupper()
    return is_explicit or int.from_bytes(data[4:8], "little") <= 64


def _of_pydicom(work: Callable[..., Any], *values: Any, **options: Any) -> Any:
    """Call a function of pydicom; errors, which may be of any type, become a `DicomError`."""
    try:
        return work(*values, **options)
    except (DicomError, MemoryError, OSError):
        raise
    except Exception as error:
        how = "cut off" if error_text(error).startswith("End of file") else "damaged"
        raise DicomError(f"the DICOM file is {how}: {error_text(error)}") from error


def _check(file: pydicom.FileDataset) -> None:
    """Refuse a file that `decode` cannot show; set the transfer syntax if it is missing."""
    if "PixelData" not in file:
        raise DicomError(_without_image(file))
    frames = str(read_value(file, "NumberOfFrames") or "1")
    colours = read_value(file, "PhotometricInterpretation")
    bits = read_value(file, "BitsAllocated")
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
    """Message about a DICOM file without pixels: its kind and modality."""
    uid = read_value(file, "SOPClassUID") or file.file_meta.get("MediaStorageSOPClassUID")
    kind = uids.UID(uid).name if uid else "of unknown kind"
    if "Image Storage" in kind:
        return f"the DICOM file ({kind}) has no pixels; is it cut off?"
    modality = read_value(file, "Modality")
    return f"the DICOM file holds no image: {kind}" + (f", modality {modality}" if modality else "")


def _cells(file: pydicom.FileDataset) -> np.ndarray:
    """The stored cells of the pixels, before bits are extracted: int or uint (rows, columns)."""
    syntax = file.file_meta.TransferSyntaxUID
    if syntax in _LOSSLESS:
        _check_jpeg(next(generate_frames(file.PixelData, number_of_frames=1)), file)
    # Pillow first: results do not depend on which other decoders are installed.
    plugin = "pillow" if "pillow" in get_decoder(syntax).available_plugins else ""
    # With the header's bits stored, pydicom would cut values off, at whatever bit they end.
    options = {} if _is_coded(file) else {"bits_stored": file.BitsAllocated}
    return pixel_array(file, decoding_plugin=plugin, **options)


def _is_coded(file: pydicom.FileDataset) -> bool:
    """Whether the compression codes values, not the cells that contain them."""
    syntax = file.file_meta.TransferSyntaxUID
    return bool(syntax.is_encapsulated) and syntax != uids.RLELossless


def _stored(file: pydicom.FileDataset) -> tuple[np.ndarray, tuple[str, ...]]:
    """Stored values, which are some bits of each cell; and a note if other bits are in use."""
    bits = file.BitsStored
    if not 1 <= bits <= file.BitsAllocated:
        raise DicomError(f"needs 1 to {file.BitsAllocated} bits stored; has {bits}")
    high = bits - 1 if has_misplaced_high_bit(file) else file.get("HighBit", bits - 1)
    if high != bits - 1 and _is_coded(file):
        raise DicomError(f"needs high bit {bits - 1} where pixels are compressed; has {high}")
    cells = _cells(file)
    spare = 8 * cells.itemsize - 1 - high
    values = cells << spare >> spare + high + 1 - bits  # a sign is the highest stored bit
    above = cells >> high >> 1
    beyond = ((above != 0) & (above != -1)).any()
    has_overlay = any((group, 0x0102) in file for group in range(0x6000, 0x6020, 2))
    return values, (f"values beyond its {bits} bits",) if beyond and not has_overlay else ()


def _check_jpeg(frame: bytes, file: pydicom.FileDataset) -> None:
    """Refuse a JPEG with a damaged header, which would crash gdcm and the process."""
    segments, at = {}, 2
    while frame[at] == 0xFF and (marker := frame[at + 1]) != 0xDA:  # start of scan
        length = int.from_bytes(frame[at + 2 : at + 4], "big")
        segments[marker] = frame[at + 4 : at + 2 + length]
        at += 2 + length
    codes = segments.get(0xC4) or 0xF7 in segments  # JPEG-LS has none
    start = next((segments[each] for each in (0xC0, 0xC1, 0xC3, 0xF7) if each in segments), b"")
    if not codes or start[:1] > b"\x10" or start[1:5] != pack(">HH", file.Rows, file.Columns):
        raise DicomError("the JPEG's header is damaged")


def _grey(file: pydicom.FileDataset) -> tuple[np.ndarray, tuple[str, ...]]:
    """The image as uint8 (rows, columns), and notes; see `decode`."""
    try:
        stored, notes = _stored(file)
    except Exception as error:
        name = file.file_meta.TransferSyntaxUID.name
        raise DicomError(f"its pixels cannot be decoded ({name}): {error_text(error)}") from error
    codes = stored.view(f"u{stored.itemsize}")
    # Grey depends on the stored value alone, so it is computed once for each possible value.
    values = np.arange(256**stored.itemsize, dtype=codes.dtype).view(stored.dtype).astype(np.int64)
    padding = _padding(file, values)
    present = (np.bincount(codes.ravel(), minlength=len(values)) > 0) & ~padding
    light = _light(file, values, present)
    if file.PhotometricInterpretation == "MONOCHROME1":
        light = 1 - light
    light[padding] = 0
    return np.rint(255 * light).astype(np.uint8)[codes], notes


def _padding(file: pydicom.FileDataset, values: np.ndarray) -> np.ndarray:
    """Which stored values are padding: bool, the shape of `values`."""
    one = file.get("PixelPaddingValue")
    if one is None:
        return np.zeros(values.shape, bool)
    other = file.get("PixelPaddingRangeLimit", one)
    signed, bits = bool(file.PixelRepresentation), file.BitsStored
    ends = sorted(_resigned(end, signed, bits) for end in (one, other))
    return (values >= ends[0]) & (values <= ends[1])


def _resigned(value: int, signed: bool, bits: int = 16) -> int:
    """Interpret a header value of `bits` or 16 bits, whichever sign it was written with."""
    if signed and value >= 2 ** (bits - 1):
        return value - (2**bits if value < 2**bits else 2**16)
    return value if signed else value % 2**16


def _describe(table: pydicom.Dataset, signed: bool) -> None:
    """Correct the descriptor of a lookup table in place; its inputs are signed or not."""
    entries, start, _ = table.LUTDescriptor
    right = [entries % 2**16, _resigned(start, signed), 16]  # pydicom misreads other depths
    table["LUTDescriptor"] = DataElement("LUTDescriptor", "US", right, validation_mode=IGNORE)


def _light(file: pydicom.FileDataset, values: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Brightness of each stored value, 0 to 1, before any inversion."""
    signed, bits = bool(file.PixelRepresentation), file.BitsStored
    for keyword, ignored in (("RescaleSlope", (None, 0)), ("RescaleIntercept", (None,))):
        if keyword in file and file.get(keyword) in ignored:
            delattr(file, keyword)
    for table in file.get("ModalityLUTSequence") or ():
        _describe(table, signed)
    shown = apply_modality_lut(values, file).astype(float)
    ends = np.sort(shown[present])
    if file.get("VOILUTSequence"):
        table = file.VOILUTSequence[0]
        least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if signed else (0, 2**bits)
        _describe(table, shown[(values >= least) & (values < most)].min() < 0)
        entries, start, _ = table.LUTDescriptor
        domain = np.arange(start, start + (entries or 2**16))
        inside = np.rint(shown).astype(int).clip(domain[0], domain[-1])
        shown = apply_voi_lut(inside, file).astype(float)
        ends = np.sort(apply_voi_lut(domain, file).astype(float))
    elif (window_width(file) or 0) >= 1:
        with np.errstate(over="ignore"):  # at the far ends of a sigmoid
            shown = apply_voi_lut(np.append(shown, (-_FAR, _FAR)), file)
        shown, ends = shown[:-2], shown[-2:]
    if not ends.size or ends[0] == ends[-1]:
        return np.zeros(values.shape)
    return ((shown - ends[0]) / (ends[-1] - ends[0])).clip(0, 1)
